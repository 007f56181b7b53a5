//! The text of a unit in assembly of x86-64: independent of its position, with groups, commons and constructors by hand.

use std::fmt::Write;

use super::model::{Constructor, Definition, Unit, Use, What};

/// Whether this machine runs it.
pub const RUNS: bool = cfg!(target_arch = "x86_64");

/// The source of a unit.
pub fn text(unit: &Unit) -> String {
    let mut text = String::new();
    for definition in &unit.defines {
        text.push_str(&define(unit, definition));
    }
    for constructor in &unit.constructors {
        text.push_str(&construct(unit, constructor));
    }
    text.push_str(&report(unit));
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    text
}

fn define(unit: &Unit, definition: &Definition) -> String {
    let Definition { name, what, value, visibility, .. } = definition;
    let grouped = matches!(what, What::Inline | What::InlineStatic | What::InlineData);
    let weak = grouped || matches!(what, What::Weak | What::WeakAlias | What::WeakData | What::WeakTls);
    let binding = if weak { "weak" } else { "globl" };
    let mut text = String::new();
    if !visibility.is_empty() {
        let _ = writeln!(text, "\t.{visibility} {name}");
    }
    if *what == What::Common {
        let _ = writeln!(text, "\t.comm {name},{},4", 4 * (1 + value % 7));
        return text;
    }
    let group = if grouped { format!(",{name},comdat") } else { String::new() };
    let flag = if grouped { "G" } else { "" };
    if what.is_function() {
        let body = match what {
            What::Alias | What::WeakAlias => format!("{name}_body_u{}", unit.number),
            _ => name.clone(),
        };
        let _ = writeln!(text, "\t.section .text.{name},\"ax{flag}\",@progbits{group}");
        let _ = writeln!(text, "\t.{binding} {name}\n\t.type {name},@function");
        let _ = writeln!(text, "{body}:\n\timull $3,%edi,%eax\n\taddl ${value},%eax\n\tret");
        if body != *name {
            let _ = writeln!(text, "\t.set {name},{body}");
        }
        return text;
    }
    let (section, flags) = if what.is_tls() { ("tdata", "awT") } else { ("data", "aw") };
    let _ = writeln!(text, "\t.section .{section}.{name},\"{flags}{flag}\",@progbits{group}\n\t.p2align 2");
    let size = 4 * (1 + value % 3);
    let kind = if what.is_tls() { "tls_object" } else { "object" };
    let _ = writeln!(text, "\t.{binding} {name}\n\t.type {name},@{kind}\n\t.size {name},{size}");
    let _ = writeln!(text, "{name}:\n\t.long {value}\n\t.zero {}", size - 4);
    text
}

fn construct(unit: &Unit, constructor: &Constructor) -> String {
    let name = format!("u{}_{}", unit.number, constructor.number);
    let mut text = said(&format!("ctor {name}"), &format!("ctor_{name}"));
    let order = constructor.priority.map(|priority| format!(".{priority:05}")).unwrap_or_default();
    let _ =
        writeln!(text, "\t.section .init_array{order},\"aw\",@init_array\n\t.p2align 3\n\t.quad ctor_{name}");
    if constructor.destructor {
        text.push_str(&said(&format!("dtor {name}"), &format!("dtor_{name}")));
        let _ = writeln!(
            text,
            "\t.section .fini_array{order},\"aw\",@fini_array\n\t.p2align 3\n\t.quad dtor_{name}"
        );
    }
    text
}

/// A local function that prints a line.
fn said(line: &str, function: &str) -> String {
    format!(
        "\t.section .rodata.{function},\"a\",@progbits\n.L{function}:\n\t.asciz \"{line}\"\n\t.text\n\
         {function}:\n\tsubq $8,%rsp\n\tleaq .L{function}(%rip),%rdi\n\tcall puts@PLT\n\taddq $8,%rsp\n\tret\n"
    )
}

fn report(unit: &Unit) -> String {
    let number = unit.number;
    let mut text = String::new();
    let mut strings = String::new();
    let _ = writeln!(
        text,
        "\t.text\n\t.globl report_u{number}\n\t.type report_u{number},@function\nreport_u{number}:\n\
         \tcmpb $0,.Ldone(%rip)\n\tjne .Lend\n\tmovb $1,.Ldone(%rip)\n\tsubq $8,%rsp"
    );
    let mut labels = 0;
    let mut note = |text: &mut String, what: &str| {
        labels += 1;
        let _ = writeln!(strings, ".Ls{labels}:\n\t.asciz \"u{number} {what}\"");
        let _ = writeln!(text, "\tleaq .Ls{labels}(%rip),%rdi\n\tcall note@PLT");
        labels
    };
    for usage in &unit.uses {
        match usage {
            Use::Call(name) => {
                let _ = writeln!(text, "\tmovl $7,%edi\n\tcall {name}@PLT\n\tmovl %eax,%esi");
                note(&mut text, name);
            }
            Use::Data(name) => {
                let _ =
                    writeln!(text, "\tmovq {name}@GOTPCREL(%rip),%rax\n\tmovl (%rax),%esi\n\taddl $3,(%rax)");
                note(&mut text, name);
            }
            Use::Tls(name) => {
                let _ = writeln!(text, "\tmovq {name}@gottpoff(%rip),%rax\n\tmovl %fs:(%rax),%esi");
                let _ = writeln!(text, "\taddl $5,%fs:(%rax)");
                note(&mut text, name);
            }
            Use::Report(other) => {
                let _ = writeln!(text, "\tcall report_u{other}@PLT");
            }
            Use::WeakCall(name) if unit.has(name) => {
                let _ = writeln!(text, "\tmovl $7,%edi\n\tcall {name}@PLT\n\tmovl %eax,%esi");
                note(&mut text, name);
            }
            Use::WeakCall(name) => {
                let _ = writeln!(text, "\t.weak {name}\n\tmovq {name}@GOTPCREL(%rip),%rax\n\txorl %esi,%esi");
                let _ = writeln!(text, "\ttestq %rax,%rax\n\tje .Lno_{name}_u{number}\n\tmovl $7,%edi");
                let _ = writeln!(text, "\tcall *%rax\n\tmovl %eax,%esi\n.Lno_{name}_u{number}:");
                note(&mut text, name);
            }
            Use::WeakReport(other) if *other == number => {}
            Use::WeakReport(other) => {
                let _ = writeln!(
                    text,
                    "\t.weak report_u{other}\n\tmovq report_u{other}@GOTPCREL(%rip),%rax\n\ttestq %rax,%rax\n\
                     \tje .Lno_report_u{other}\n\tcall *%rax\n.Lno_report_u{other}:"
                );
            }
        }
    }
    let _ = writeln!(text, "\taddq $8,%rsp\n.Lend:\n\tret\n\t.section .bss.done_u{number},\"aw\",@nobits");
    let _ = writeln!(text, ".Ldone:\n\t.zero 1\n\t.section .rodata.str_u{number},\"a\",@progbits\n{strings}");
    text
}

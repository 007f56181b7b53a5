//! The text of a unit in C or C++. Everything that can be observed of a link is printed through `note`.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::model::{Constructor, Definition, Kind, Language, Program, Unit, Use, What};

/// The source of a unit that is not written in assembly.
pub fn text(program: &Program, unit: &Unit) -> String {
    let cpp = unit.language == Language::Cpp;
    let classes = cpp && unit.is_bitcode() && program.options.classes;
    let mut text = Source { program, unit, cpp, classes, text: String::new() };
    text.head();
    if classes {
        text.classes();
    }
    for definition in &unit.defines {
        text.definition(definition);
    }
    for constructor in &unit.constructors {
        text.constructor(constructor);
    }
    text.report();
    if unit.number == 0 {
        text.main(program.options.kind == Kind::Shared);
    }
    text.text
}

/// The program that calls a shared library's `entry`.
pub const HOST: &str = "int entry(void);\nint main(void) { return entry(); }\n";

/// A module of which a program has several.
pub const TWIN: &str = "int printf(const char *, ...);
static unsigned seen;
__attribute__((noinline)) static unsigned twin(unsigned x) { seen += x; return seen * 3u; }
__attribute__((constructor)) static void ctor_twin(void) { printf(\"ctor twin %u\\n\", twin(4)); }
";

/// Hidden, so that a link sees all classes that derive from it.
const SHAPE: &str = "struct __attribute__((visibility(\"hidden\"))) Shape {
  virtual unsigned corners() const { return 0; }
  virtual unsigned grow(unsigned x) const { return x; }
};";

struct Source<'a> {
    program: &'a Program,
    unit: &'a Unit,
    cpp: bool,
    classes: bool,
    text: String,
}

impl Source<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// Whether another unit has a variable that nobody writes, and one that nobody reads: a link may give each module its own.
    fn has_copied(&self, unit: usize) -> bool {
        self.program.units.iter().any(|other| other.number == unit && other.language != Language::Assembly)
    }

    /// Declarations, and the local function.
    fn head(&mut self) {
        if let Some(library) = &self.unit.library {
            self.line(format!("#pragma comment(lib, \"{library}\")"));
        }
        if self.cpp {
            self.line("extern \"C\" {");
        }
        self.line("int puts(const char *);\nint printf(const char *, ...);");
        self.line("void note(const char *, unsigned);");
        let own = |name: &str| self.unit.has(name);
        let mut seen = BTreeSet::new();
        let mut lines = Vec::new();
        for usage in &self.unit.uses {
            let line = match usage {
                Use::Call(name) if !own(name) => format!("unsigned {name}(unsigned);"),
                Use::WeakCall(name) if !own(name) => {
                    format!("__attribute__((weak)) unsigned {name}(unsigned);")
                }
                Use::Data(name) if !own(name) => format!("extern unsigned {name}[];"),
                Use::Tls(name) if !own(name) => format!("extern __thread unsigned {name};"),
                Use::Report(unit) if self.has_copied(*unit) => {
                    format!("void report_u{unit}(void);\nextern unsigned fixed_u{unit}, written_u{unit};")
                }
                Use::Report(unit) => format!("void report_u{unit}(void);"),
                Use::WeakReport(unit) => format!("__attribute__((weak)) void report_u{unit}(void);"),
                _ => continue,
            };
            lines.push(line);
        }
        for name in self.unit.defines.iter().flat_map(|definition| &definition.calls) {
            lines.push(format!("unsigned {name}(unsigned);"));
        }
        lines.retain(|line| seen.insert(line.clone()));
        lines.iter().for_each(|line| self.line(line));
        if self.cpp {
            self.line("}");
        }
        let number = self.unit.number;
        self.line(if self.cpp { "extern \"C\" {" } else { "" });
        self.line(format!("unsigned fixed_u{number} = {number}, written_u{number};"));
        self.line(if self.cpp { "}" } else { "" });
        self.line(format!("static unsigned counter_u{number} = {number};"));
        self.line(format!(
            "__attribute__((noinline, unused)) static unsigned local_u{number}(unsigned x) \
             {{ counter_u{number} += x; return counter_u{number} * 5u; }}"
        ));
        self.line(
            "__attribute__((noinline, unused)) static unsigned told(const char *text, unsigned value) \
             { puts(text); return value; }",
        );
    }

    /// A class with a constant and a function of its own, and an object of which only a link can know what it is.
    fn classes(&mut self) {
        let number = self.unit.number;
        self.line(SHAPE);
        self.line(format!(
            "struct __attribute__((visibility(\"hidden\"))) Shape_u{number} : Shape {{\n  \
             unsigned corners() const override {{ return {}; }}\n  \
             unsigned grow(unsigned x) const override {{ return local_u{number}(x); }}\n}};",
            number % 3
        ));
        self.line(format!(
            "static Shape_u{number} own_u{number};\nstatic const Shape *volatile shape_u{number} = &own_u{number};"
        ));
    }

    fn definition(&mut self, definition: &Definition) {
        let Definition { name, what, value, visibility, .. } = definition;
        let number = self.unit.number;
        let mut attributes = Vec::new();
        if !visibility.is_empty() {
            attributes.push(format!("visibility(\"{visibility}\")"));
        }
        // C has no COMDAT of its own, and C++ no common symbols.
        let weak = match what {
            What::Weak | What::WeakAlias | What::WeakData | What::WeakTls => true,
            What::Inline | What::InlineStatic | What::InlineData => !self.cpp,
            What::Common => self.cpp,
            _ => false,
        };
        if weak {
            attributes.push("weak".to_owned());
        }
        let inline = self.cpp && matches!(what, What::Inline | What::InlineStatic | What::InlineData);
        if inline && *what != What::InlineData {
            attributes.push("noinline".to_owned());
        }
        if self.cpp {
            self.line("extern \"C\" {");
        }
        let head = |attributes: &[String], inline: bool| {
            let list = if attributes.is_empty() {
                String::new()
            } else {
                format!("__attribute__(({})) ", attributes.join(", "))
            };
            format!("{}{list}", if inline { "inline " } else { "" })
        };
        match what {
            What::Strong | What::Weak | What::Inline | What::InlineStatic => {
                let start = format!("{}unsigned {name}", head(&attributes, inline));
                self.function(&start, definition);
            }
            What::Alias | What::WeakAlias => {
                let other = format!("{name}_body_u{number}");
                self.function(&format!("unsigned {other}"), definition);
                attributes.push(format!("alias(\"{other}\")"));
                self.line(format!("{}unsigned {name}(unsigned);", head(&attributes, false)));
            }
            What::Ifunc => {
                let other = format!("{name}_body_u{number}");
                self.function(
                    &format!("__attribute__((visibility(\"hidden\"))) unsigned {other}"),
                    definition,
                );
                self.line(format!(
                    "__attribute__((visibility(\"hidden\"))) void *{name}_choose_u{number}(void) {{ return (void *){other}; }}"
                ));
                attributes.push(format!("ifunc(\"{name}_choose_u{number}\")"));
                self.line(format!("{}unsigned {name}(unsigned);", head(&attributes, false)));
            }
            What::Data | What::WeakData => {
                let size = 1 + value % 3;
                self.line(format!("{}unsigned {name}[{size}] = {{{value}}};", head(&attributes, false)));
            }
            What::Common => {
                self.line(format!("{}unsigned {name}[{}];", head(&attributes, false), 1 + value % 7));
            }
            What::InlineData if inline => self.line(format!(
                "{}unsigned {name}[1] = {{told(\"ctor {name} of u{number}\", {value})}};",
                head(&attributes, true)
            )),
            What::InlineData => {
                self.line(format!("{}unsigned {name}[1] = {{{value}}};", head(&attributes, false)));
            }
            What::Tls | What::WeakTls => {
                self.line(format!("{}__thread unsigned {name} = {value};", head(&attributes, false)));
            }
        }
        if self.cpp {
            self.line("}");
        }
    }

    /// A function whose result tells which one it is.
    fn function(&mut self, start: &str, definition: &Definition) {
        let value = definition.value;
        let mut body = format!("  unsigned r = x * 3u + {value}u;\n");
        if definition.what == What::InlineStatic {
            let _ = writeln!(body, "  static unsigned kept = {value}; kept += x; r ^= kept;");
        }
        if definition.local {
            let _ = writeln!(body, "  r += local_u{}(x);", self.unit.number);
        }
        if definition.long {
            body.push_str("  for (unsigned i = 0; i < (x & 7u); ++i) r = r * 33u + i;\n");
        }
        for callee in &definition.calls {
            let _ = writeln!(body, "  r ^= {callee}(x + 1u) * 7u;");
        }
        self.line(format!("{start}(unsigned x) {{\n{body}  return r;\n}}"));
    }

    fn constructor(&mut self, constructor: &Constructor) {
        let Constructor { number, priority, object, destructor } = constructor;
        let name = format!("u{}_{number}", self.unit.number);
        if self.cpp && *object {
            let end = if *destructor {
                format!(" ~Said_{name}() {{ puts(\"dtor {name}\"); }}")
            } else {
                String::new()
            };
            self.line(format!("struct Said_{name} {{ Said_{name}() {{ puts(\"ctor {name}\"); }}{end} }};"));
            let order = priority.map(|priority| format!("__attribute__((init_priority({priority}))) "));
            // One with a priority has to be defined at namespace scope; it is local all the same.
            self.line(format!("static {}Said_{name} said_{name};", order.unwrap_or_default()));
            return;
        }
        let order = priority.map(|priority| format!("({priority})")).unwrap_or_default();
        self.line(format!(
            "__attribute__((constructor{order})) static void ctor_{name}(void) {{ puts(\"ctor {name}\"); }}"
        ));
        if *destructor {
            self.line(format!(
                "__attribute__((destructor{order})) static void dtor_{name}(void) {{ puts(\"dtor {name}\"); }}"
            ));
        }
    }

    fn report(&mut self) {
        let number = self.unit.number;
        let linkage = if self.cpp { "extern \"C\" " } else { "" };
        self.line(format!("{linkage}void report_u{number}(void) {{"));
        self.line("  static int done;\n  if (done) return;\n  done = 1;");
        for usage in &self.unit.uses {
            let line = match usage {
                Use::Call(name) => format!("  note(\"u{number} {name}\", {name}(7));"),
                // A definition in this unit is never null, and clang says so.
                Use::WeakCall(name) if self.unit.has(name) => {
                    format!("  note(\"u{number} {name}\", {name}(7));")
                }
                Use::WeakCall(name) => format!(
                    "  if ({name}) note(\"u{number} {name}\", {name}(7)); else note(\"u{number} no {name}\", 1);"
                ),
                Use::Data(name) => format!("  note(\"u{number} {name}\", {name}[0]); {name}[0] += 3;"),
                Use::Tls(name) => format!("  note(\"u{number} {name}\", {name}); {name} += 5;"),
                Use::Report(other) if self.has_copied(*other) => format!(
                    "  report_u{other}();\n  note(\"u{number} fixed u{other}\", fixed_u{other});\n  written_u{other} = {number};"
                ),
                Use::Report(other) => format!("  report_u{other}();"),
                Use::WeakReport(other) if *other == number => continue,
                Use::WeakReport(other) => format!(
                    "  if (report_u{other}) report_u{other}(); else note(\"u{number} no u{other}\", 2);"
                ),
            };
            self.line(line);
        }
        if self.classes {
            self.line(format!("  const Shape *shape = shape_u{number};"));
            self.line(format!("  note(\"u{number} shape\", shape->grow(shape->corners()));"));
        }
        self.line("}");
    }

    fn main(&mut self, library: bool) {
        let linkage = if self.cpp { "extern \"C\" " } else { "" };
        self.line("static unsigned sum;");
        self.line(format!(
            "{linkage}void note(const char *what, unsigned value) \
             {{ printf(\"%s %u\\n\", what, value); sum = sum * 31u + value; }}"
        ));
        let (linkage, name) = if library { (linkage, "entry") } else { ("", "main") };
        self.line(format!("{linkage}int {name}(void) {{\n  report_u0();\n  return (int)(sum % 101u);\n}}"));
    }
}

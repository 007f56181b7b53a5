//! What every job of a program of LLVM does first, done once: all targets are registered, with their passes.
//!
//! The functions are LLVM's C interface (llvm-c/Target.h), which does nothing the second time. What a library lacks is
//! passed over, so that another program stays as it is. Knows nothing of jobs.

use std::ffi::{CString, c_void};

/// The targets that LLVM has or had (llvm/CMakeLists.txt). One that is missing here is registered by each job.
const TARGETS: [&str; 25] = [
    "AArch64",
    "AMDGPU",
    "ARC",
    "ARM",
    "AVR",
    "BPF",
    "CSKY",
    "DirectX",
    "Hexagon",
    "Lanai",
    "LoongArch",
    "M68k",
    "MSP430",
    "Mips",
    "NVPTX",
    "PowerPC",
    "RISCV",
    "SPIRV",
    "Sparc",
    "SystemZ",
    "VE",
    "WebAssembly",
    "X86",
    "XCore",
    "Xtensa",
];
/// What clang and lld register of each.
const PARTS: [&str; 5] = ["TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"];

/// Registers the targets; whether there are any.
pub fn register_targets() -> bool {
    let names = PARTS.iter().flat_map(|part| TARGETS.map(|target| format!("LLVMInitialize{target}{part}")));
    let mut found = false;
    for name in names.filter_map(|name| CString::new(name).ok()) {
        // SAFETY: a C string; the default search is that of the program's own references.
        let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if !function.is_null() {
            // SAFETY: all functions of these names take nothing and return nothing, and libraries are initialised.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(function)() };
            found = true;
        }
    }
    found
}

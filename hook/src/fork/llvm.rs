//! The first steps of every LLVM program's job, done once: registers all targets with their passes, and resets the
//! options of clang's compiler proper.
//!
//! The registering functions are LLVM's C interface (llvm-c/Target.h); a second call does nothing. The resetting
//! function (llvm/Support/CommandLine.h) is interposed. Functions missing from a library are skipped, so other programs
//! stay unchanged. Independent of jobs.

use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

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
/// The parts of each target that clang and lld register.
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

/// `llvm::cl::ResetAllOptionOccurrences()`.
const RESET: &CStr = c"_ZN4llvm2cl25ResetAllOptionOccurrencesEv";

/// Whether the server has reset its options, which it changes in no other way.
static WERE_RESET: AtomicBool = AtomicBool::new(false);
/// Whether the next reset in this process would change nothing.
static ARE_RESET: AtomicBool = AtomicBool::new(false);

/// Resets the options of a compiler proper before a job is forked; the compiler begins with that (clang's driver.cpp,
/// `ExecuteCC1Tool`). Each job would otherwise write to thousands of options, and so get a copy of each of their pages.
pub fn before_job(first: Option<&CStr>) {
    let is_compiler = first.is_some_and(|word| word.to_bytes().starts_with(b"-cc1"));
    if is_compiler && !WERE_RESET.load(Ordering::Relaxed) {
        WERE_RESET.store(reset(), Ordering::Relaxed);
    }
    ARE_RESET.store(is_compiler && WERE_RESET.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Calls LLVM's own function; whether there is one.
fn reset() -> bool {
    // SAFETY: a C string; RTLD_NEXT finds the definition after this library's, which is LLVM's.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, RESET.as_ptr()) };
    if !found.is_null() {
        // SAFETY: a function of this name takes nothing and returns nothing, and libraries are initialised.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(found)() };
    }
    !found.is_null()
}

/// Called by clang in place of LLVM's own, which a job's first call need not reach.
#[unsafe(export_name = "_ZN4llvm2cl25ResetAllOptionOccurrencesEv")]
pub extern "C" fn reset_all_option_occurrences() {
    if !ARE_RESET.swap(false, Ordering::Relaxed) {
        reset();
    }
}

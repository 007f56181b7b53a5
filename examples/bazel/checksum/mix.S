// unsigned mix(unsigned sum, unsigned byte): sum * 31 + byte
        .text
        .globl mix
        .type mix, @function
mix:
#if defined(__x86_64__)
        imull $31, %edi, %eax
        addl %esi, %eax
        ret
#elif defined(__aarch64__)
        mov w2, #31
        madd w0, w0, w2, w1
        ret
#else
#error "no mix for this processor"
#endif
        .size mix, . - mix
        .section .note.GNU-stack, "", %progbits

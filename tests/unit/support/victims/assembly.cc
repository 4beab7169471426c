// SPDX-License-Identifier: Apache-2.0
#include "assembly.h"

asm(R"(
    .text
    .globl assembly_call
    .type assembly_call, @function
assembly_call:
    push %rbx
    push %rbp
    push %r12
    sub $0x58, %rsp
    mov $0x1234, %ebp
    mov %rdi, %rbx
    call *%rbx
    add $0x58, %rsp
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size assembly_call, .-assembly_call

    .globl assembly_call_for_good
    .type assembly_call_for_good, @function
assembly_call_for_good:
    sub $8, %rsp
    call *%rdi
    ud2
    .size assembly_call_for_good, .-assembly_call_for_good

    # Its rule for the frame address is an expression that jumps to its own beginning.
    .globl assembly_with_endless_rule
    .type assembly_with_endless_rule, @function
assembly_with_endless_rule:
    .cfi_startproc
    push %rbx
    .cfi_escape 0x0f, 0x03, 0x2f, 0xfd, 0xff
    call *%rdi
    pop %rbx
    ret
    .cfi_endproc
    .size assembly_with_endless_rule, .-assembly_with_endless_rule

    .globl assembly_restorer
    .type assembly_restorer, @function
    nop
assembly_restorer:
    mov $15, %rax
    syscall
    .size assembly_restorer, .-assembly_restorer
)");

// Threads of execution that hand over to each other by hand.
#pragma once

#include <stddef.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

constexpr size_t kStack = 128 << 10;

struct Context {
    char* stack;
#if defined(__x86_64__)
    void* at;
#else
    ucontext_t at;
#endif
};

#if defined(__x86_64__)
extern "C" void emu_switch(void** save, void* load);
asm(R"(
.text
.globl emu_switch
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
inline void change(Context& from, Context& to) {
    emu_switch(&from.at, to.at);
}
inline void prepare(Context& context, void (*entry)()) {
    void** top = reinterpret_cast<void**>(context.stack + kStack);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void*>(entry);
    context.at = top - 8;
}
#else
inline void change(Context& from, Context& to) {
    swapcontext(&from.at, &to.at);
}
inline void prepare(Context& context, void (*entry)()) {
    getcontext(&context.at);
    context.at.uc_stack.ss_sp = context.stack;
    context.at.uc_stack.ss_size = kStack;
    makecontext(&context.at, entry, 0);
}
#endif

// What other libraries call when they are done with memory that was lent to them by DLPack.
//
// They may call from any thread, with or without Python's lock, and while an exception is on its
// way up. A callback into Python would lose that exception, so it is put aside here.
#include "core/platform.h"

namespace {

using Deleter = void (*)(void* managed);

// Python's functions, given by Python itself so that nothing has to be linked.
struct Python {
    int (*gil_ensure)(void);
    void (*gil_release)(int state);
    void (*err_fetch)(void** type, void** value, void** trace);
    void (*err_restore)(void* type, void* value, void* trace);
    int (*capsule_is_valid)(void* capsule, const char* name);
    void* (*capsule_get_pointer)(void* capsule, const char* name);
    Deleter drop;
};

Python python;

}  // namespace

// `functions` null means that Python is about to end: what is still lent goes with the process.
CVCLI_EXPORT void cvcli_dlpack_start(const Python* functions) {
    python = functions ? *functions : Python{};
}

// The deleter of everything we lend.
CVCLI_EXPORT void cvcli_dlpack_deleter(void* managed) {
    if (!python.drop) return;
    const int state = python.gil_ensure();
    void *type, *value, *trace;
    python.err_fetch(&type, &value, &trace);
    python.drop(managed);
    python.err_restore(type, value, trace);
    python.gil_release(state);
}

// The destructor of our capsules: one that was consumed has another name by now.
CVCLI_EXPORT void cvcli_dlpack_capsule_gone(void* capsule) {
    if (!python.drop) return;
    static const char* const names[] = {"dltensor", "dltensor_versioned"};
    for (const char* name : names) {
        if (python.capsule_is_valid(capsule, name)) {
            cvcli_dlpack_deleter(python.capsule_get_pointer(capsule, name));
            return;
        }
    }
}

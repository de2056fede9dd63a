// Runs the threads of a block one after the other, each until it waits, and checks what they do.
//
// Threads are fibers of one processor. Which one goes next is drawn from a seed, so that code
// without the barrier it needs shows. Every access to memory comes by here.
#include "runtime.h"
#include "switch.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMost = 1024;
constexpr int kWarp = 32;
enum State { kReady, kAtWarp, kAtBlock, kDone };
const char* const kStates[] = {"is ready", "waits for its warp", "waits for its block", "is done"};

struct Fiber : Context {
    State state;
    unsigned mask;
    int kind;
    uint64_t value;
    uint64_t got[kWarp];
    int total;
};

// Who last wrote and read a byte of shared memory. A reader of -1 is several of one warp.
struct Byte {
    uint64_t written_block, written_warp, read_block, read_warp;
    int writer, reader, reader_warp;
    bool many_warps;
};

Fiber fibers[kMost];
Fiber scheduler;
EmuLaunch now;
int current, threads;
uint64_t random_state, block_time, warp_time[kMost / kWarp];
Byte* bytes;
size_t bytes_count;
char message[512];
const void* site;

unsigned draw(unsigned below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>((random_state >> 33) % below);
}

[[noreturn]] void fail(const void* where, const char* format, ...) {
    int used =
        snprintf(message, sizeof message, "block (%u, %u, %u) thread %d: ", emu_place.block.x,
                 emu_place.block.y, emu_place.block.z, current);
    va_list list;
    va_start(list, format);
    vsnprintf(message + used, sizeof message - used, format, list);
    va_end(list);
    site = where;
    change(fibers[current], scheduler);
    abort();
}

// A second write to a byte: a race only if it changes what the first one put there, which shows
// at the next access.
struct Second {
    const char* at;
    char old;
    int writer;
    const void* where;
} second;

void settle() {
    const Second last = second;
    second.at = nullptr;
    if (!last.at || *last.at == last.old) return;
    fail(last.where, "writes shared memory that thread %d wrote, with no barrier since",
         last.writer);
}

void wait_as(State state) {
    settle();
    fibers[current].state = state;
    change(fibers[current], scheduler);
}

// Ends the wait of a warp's lanes once all that are in the mask have come to the same call.
void arrive_at_warp(unsigned mask) {
    const int first = current & ~(kWarp - 1);
    for (int lane = 0; lane < kWarp; ++lane) {
        const Fiber& other = fibers[first + lane];
        if (!(mask >> lane & 1)) continue;
        if (first + lane >= threads || other.state != kAtWarp || other.mask != mask) return;
        if (other.kind != fibers[current].kind) return;
    }
    for (int lane = 0; lane < kWarp; ++lane) {
        if (!(mask >> lane & 1)) continue;
        Fiber& other = fibers[first + lane];
        for (int i = 0; i < kWarp; ++i) other.got[i] = fibers[first + i].value;
        other.state = kReady;
    }
    if (fibers[current].kind == EMU_SYNCWARP) ++warp_time[first / kWarp];
}

void arrive_at_block() {
    int total = 0;
    for (int i = 0; i < threads; ++i) {
        if (fibers[i].state != kAtBlock) return;
        total += fibers[i].value != 0;
    }
    for (int i = 0; i < threads; ++i) {
        fibers[i].total = total;
        fibers[i].state = kReady;
    }
    ++block_time;
}

void set_place(int thread) {
    current = thread;
    emu_place.thread = {static_cast<unsigned>(thread), 0, 0};
}

void body() {
    now.call(now.arguments);
    wait_as(kDone);
    abort();
}

// Picks a thread that can go on, from a random one onwards.
int next_ready() {
    const int start = draw(threads);
    for (int i = 0; i < threads; ++i) {
        const int thread = (start + i) % threads;
        if (fibers[thread].state == kReady) return thread;
    }
    return -1;
}

bool stuck() {
    for (int i = 0; i < threads; ++i) {
        if (fibers[i].state == kDone) continue;
        int done = 0;
        for (int j = 0; j < threads; ++j) done += fibers[j].state == kDone;
        snprintf(message, sizeof message,
                 "block (%u, %u, %u): a barrier is not reached by all: thread %d %s (mask %x), "
                 "%d of %d threads are done",
                 emu_place.block.x, emu_place.block.y, emu_place.block.z, i,
                 kStates[fibers[i].state], fibers[i].mask, done, threads);
        return true;
    }
    return false;
}

bool run_block() {
    ++block_time;
    for (size_t i = 0; i < bytes_count; ++i) now.shared[i] = static_cast<char>(draw(256));
    for (int i = 0; i < threads; ++i) {
        fibers[i].state = kReady;
        fibers[i].mask = 0;
        prepare(fibers[i], body);
    }
    for (int thread; (thread = next_ready()) >= 0;) {
        set_place(thread);
        change(scheduler, fibers[thread]);
        if (message[0]) return false;
    }
    return !stuck();
}

bool ordered(int thread, uint64_t block, uint64_t warp) {
    if (block != block_time || thread == current) return true;
    return thread / kWarp == current / kWarp && warp != warp_time[current / kWarp];
}

void note_read(Byte& byte, const void* where) {
    if (byte.written_block && !ordered(byte.writer, byte.written_block, byte.written_warp)) {
        fail(where, "reads shared memory that thread %d wrote, with no barrier since", byte.writer);
    }
    const int warp = current / kWarp;
    if (byte.read_block != block_time) {
        byte.many_warps = false;
    } else if (byte.reader_warp != warp) {
        byte.many_warps = true;
    } else if (byte.read_warp == warp_time[warp] && byte.reader != current) {
        byte.reader = -1;
        return;
    }
    byte.read_block = block_time;
    byte.read_warp = warp_time[warp];
    byte.reader = current;
    byte.reader_warp = warp;
}

void note_write(Byte& byte, const void* where) {
    const int warp = current / kWarp;
    if (byte.written_block && !ordered(byte.writer, byte.written_block, byte.written_warp)) {
        const char* at = now.shared + (&byte - bytes);
        second = {at, *at, byte.writer, where};
    }
    if (byte.read_block == block_time && byte.reader != current) {
        const bool later = byte.reader_warp == warp && byte.read_warp != warp_time[warp];
        if (byte.many_warps || !later) {
            fail(where, "writes shared memory that thread %d read, with no barrier since",
                 byte.reader < 0 ? byte.reader_warp * kWarp : byte.reader);
        }
    }
    byte.writer = current;
    byte.written_block = block_time;
    byte.written_warp = warp_time[warp];
}

bool in_range(uintptr_t at, size_t size, const void* begin, const void* end) {
    return at >= reinterpret_cast<uintptr_t>(begin) &&
           at + size <= reinterpret_cast<uintptr_t>(end);
}

bool in_global(uintptr_t at, size_t size) {
    size_t low = 0;
    for (size_t high = now.ranges_count; low < high;) {
        const size_t middle = (low + high) / 2;
        if (now.ranges[2 * middle + 1] > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low < now.ranges_count && at >= now.ranges[2 * low] &&
           at + size <= now.ranges[2 * low + 1];
}

void describe(uintptr_t at, char* out, size_t room) {
    int64_t best = INT64_MAX;
    snprintf(out, room, "far from all memory");
    for (size_t i = 0; i < now.ranges_count; ++i) {
        const uint64_t begin = now.ranges[2 * i], end = now.ranges[2 * i + 1];
        const int64_t distance = at < begin ? begin - at : at >= end ? at - end : 0;
        if (distance >= best || distance > 1 << 20) continue;
        best = distance;
        snprintf(out, room, "byte %lld of an allocation of %llu",
                 static_cast<long long>(at - begin), static_cast<unsigned long long>(end - begin));
    }
}

void check(uintptr_t at, size_t size, bool write, bool atomic, const void* where) {
    if (!now.call) return;
    settle();
    if (in_global(at, size)) return;
    const Fiber& fiber = fibers[current];
    if (in_range(at, size, fiber.stack, fiber.stack + kStack)) return;
    if (in_range(at, size, now.shared, now.shared_end)) {
        if (atomic) return;
        Byte* first = bytes + (at - reinterpret_cast<uintptr_t>(now.shared));
        for (size_t i = 0; i < size; ++i)
            write ? note_write(first[i], where) : note_read(first[i], where);
        return;
    }
    if (!write && in_range(at, size, &emu_place, &emu_place + 1)) return;
    if (!write && in_range(at, size, fiber.got, fiber.got + kWarp)) return;
    if (!write && in_range(at, size, now.image, now.shared_end)) return;
    char text[128];
    describe(at, text, sizeof text);
    fail(where, "%s %zu bytes at %s", write ? "writes" : "reads", size, text);
}

}  // namespace

extern "C" {

EmuPlace emu_place;

void emu_check(const void* at, size_t size, int write) {
    check(reinterpret_cast<uintptr_t>(at), size, write != 0, true, __builtin_return_address(0));
}

void emu_fail(const char* text) {
    fail(__builtin_return_address(0), "%s", text);
}

const uint64_t* emu_exchange(unsigned mask, uint64_t value, int kind) {
    Fiber& fiber = fibers[current];
    if (!(mask >> (current % kWarp) & 1)) {
        fail(__builtin_return_address(0), "is not in the mask %x that it gives", mask);
    }
    fiber.mask = mask;
    fiber.value = value;
    fiber.kind = kind;
    fiber.state = kAtWarp;
    settle();
    arrive_at_warp(mask);
    change(fiber, scheduler);
    return fiber.got;
}

int emu_barrier(int value) {
    Fiber& fiber = fibers[current];
    fiber.value = value;
    fiber.mask = 0;
    fiber.state = kAtBlock;
    settle();
    arrive_at_block();
    change(fiber, scheduler);
    return fiber.total;
}

// Runs a launch; returns what went wrong, or null, and the place of it in the code.
const char* emu_run(const EmuLaunch* launch, const void** where) {
    now = *launch;
    threads = now.threads;
    random_state = now.seed;
    message[0] = 0;
    site = nullptr;
    bytes_count = now.shared_end - now.shared;
    bytes = static_cast<Byte*>(calloc(bytes_count + 1, sizeof(Byte)));
    for (int i = 0; i < threads; ++i) {
        if (!fibers[i].stack) fibers[i].stack = static_cast<char*>(aligned_alloc(64, kStack));
    }
    emu_place.grid_dim = {now.grid[0], now.grid[1], now.grid[2]};
    emu_place.block_dim = {now.threads, 1, 1};
    const uint64_t count = uint64_t{now.grid[0]} * now.grid[1] * now.grid[2];
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t at = now.seed % 2 ? count - 1 - i : i;
        emu_place.block = {static_cast<unsigned>(at % now.grid[0]),
                           static_cast<unsigned>(at / now.grid[0] % now.grid[1]),
                           static_cast<unsigned>(at / now.grid[0] / now.grid[1])};
        if (!run_block()) break;
    }
    now.call = nullptr;
    free(bytes);
    *where = site;
    return message[0] ? message : nullptr;
}

// What the compiler calls before each access, and when it sees undefined behaviour.
#define EMU_ACCESS(kind, size, write)                               \
    void __asan_##kind##size##_noabort(uintptr_t at) {              \
        check(at, size, write, false, __builtin_return_address(0)); \
    }
#define EMU_ACCESSES(size)        \
    EMU_ACCESS(load, size, false) \
    EMU_ACCESS(store, size, true)
EMU_ACCESSES(1)
EMU_ACCESSES(2)
EMU_ACCESSES(4)
EMU_ACCESSES(8)
EMU_ACCESSES(16)
void __asan_loadN_noabort(uintptr_t at, size_t size) {
    check(at, size, false, false, __builtin_return_address(0));
}
void __asan_storeN_noabort(uintptr_t at, size_t size) {
    check(at, size, true, false, __builtin_return_address(0));
}
void __asan_handle_no_return() {}
void __ubsan_handle_type_mismatch_v1(void*, void* at) {
    fail(__builtin_return_address(0), "uses %p, which is not aligned for its type", at);
}
void __ubsan_handle_float_cast_overflow(void*, void*) {
    fail(__builtin_return_address(0), "casts a float that the integer type cannot hold");
}
void __ubsan_handle_shift_out_of_bounds(void*, void*, void*) {
    fail(__builtin_return_address(0), "shifts by more bits than there are");
}
void __ubsan_handle_out_of_bounds(void*, void*) {
    fail(__builtin_return_address(0), "has an index outside its array");
}
void __ubsan_handle_divrem_overflow(void*, void*, void*) {
    fail(__builtin_return_address(0), "divides by zero");
}
}

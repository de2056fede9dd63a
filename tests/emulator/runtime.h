// What the emulated kernels and the emulator share.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct EmuDim {
    unsigned x, y, z;
};

struct EmuPlace {
    EmuDim thread, block, block_dim, grid_dim;
};

// One launch: `call` runs the kernel for one thread. Ranges are the memory it may touch: begin
// and end of each, sorted.
struct EmuLaunch {
    void (*call)(void** arguments);
    void** arguments;
    const char* image;
    char* shared;
    char* shared_end;
    const uint64_t* ranges;
    uint64_t ranges_count;
    uint64_t seed;
    unsigned grid[3];
    unsigned threads;
};

enum { EMU_SYNCWARP, EMU_SHUFFLE, EMU_VOTE };

extern EmuPlace emu_place;
void emu_check(const void* at, size_t size, int write);
void emu_fail(const char* text);
const uint64_t* emu_exchange(unsigned mask, uint64_t value, int kind);
int emu_barrier(int value);
}

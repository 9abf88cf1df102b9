/* Bugs on purpose, by the first letter of the input: `tools/fuzz --planted` wants every one of them
 * found, so that a run without a finding means something. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *volatile lost;

static int read_at(size_t bytes, size_t at, int freed)
{
    volatile uint8_t *const p = calloc(bytes, 1);
    if (!p) return 0;
    if (freed) free((void *)(uintptr_t)p);
    const int seen = p[at];
    if (!freed) free((void *)(uintptr_t)p);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    volatile int big = INT_MAX;
    volatile double huge = 1e300;
    switch (size ? data[0] : 0) {
    case 'l': /* leaks */
        lost = malloc(64);
        lost = NULL;
        return 0;
    case 'o': /* reads behind a block */
        return read_at(8, 8, 0) & 0;
    case 'f': /* reads what was freed */
        return read_at(8, 0, 1) & 0;
    case 'm': /* asks for more than is allowed */
        return read_at((size_t)100 << 20, 0, 0) & 0;
    case 'i': /* int too large */
        return (big + 1) & 0;
    case 'd': /* double too large for an int */
        return (int)huge & 0;
    default:
        return 0;
    }
}

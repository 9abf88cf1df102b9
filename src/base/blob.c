/* Files read whole into memory. */
#include "support.h"
#include "regular_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN      ((size_t)64) /* weights are used where they lie */
#define LARGE_PAGE ((size_t)2 << 20)

/* Large pages for a large file, which halve the time to read it: only a wish. */
static void wish_large_pages(void *data, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

static pare_status load(pare_blob *b, regular *r, pare_err *err)
{
    const size_t align = r->bytes >= 2 * LARGE_PAGE ? LARGE_PAGE : ALIGN;
    uint8_t *const block = malloc(r->bytes + align); /* no overflow: regular_file.c has looked */
    if (!block) return pare_no_memory(err);
    uint8_t *const data = block + (align - (uintptr_t)block % align) % align;
    if (align == LARGE_PAGE) wish_large_pages(data, r->bytes);
    b->block = block;
    b->data = data;
    b->bytes = r->bytes;
    const pare_status st = regular_read(r, data, r->bytes, err);
    return st ? st : regular_end(r, err);
}

pare_status pare_blob_open(pare_blob **out, const char *path, pare_err *err)
{
    *out = NULL;
    const size_t name_bytes = strlen(path) + 1;
    pare_blob *b = calloc(1, sizeof *b);
    char *name = malloc(name_bytes);
    if (!b || !name) {
        free(b);
        free(name);
        return pare_no_memory(err);
    }
    memcpy(name, path, name_bytes);
    b->path = name;
    b->refs = 1;
    regular r;
    pare_status st = regular_open(&r, path, err);
    if (st == PARE_OK) st = load(b, &r, err);
    regular_close(&r);
    if (st == PARE_OK)
        *out = b;
    else
        pare_blob_release(b);
    return st;
}

pare_blob *pare_blob_retain(pare_blob *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void pare_blob_release(pare_blob *b)
{
    if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    free(b->block);
    free(b->path);
    free(b);
}

static bool begins_with(const pare_blob *b, const char *mark, size_t n)
{
    return b->bytes >= n && memcmp(b->data, mark, n) == 0;
}

/* Editors and spreadsheets put byte order marks in front. As text, UTF-16 would be read as odd
 * letters between zeros, and every figure would be about those. */
pare_status pare_text_read_blob(char **out, size_t *bytes, pare_arena *a, const pare_blob *b,
                                pare_err *err)
{
    if (begins_with(b, "\xFF\xFE", 2) || begins_with(b, "\xFE\xFF", 2))
        return pare_fail(err, PARE_ERR_INPUT, "%s: is UTF-16; save it as UTF-8", b->path);
    const size_t skip = begins_with(b, "\xEF\xBB\xBF", 3) ? 3 : 0, n = b->bytes - skip;
    size_t room;
    char *const text = pare_add(&room, n, 1) ? pare_alloc(a, room, 1) : NULL;
    if (!text) return pare_no_memory(err);
    memcpy(text, (const char *)b->data + skip, n);
    *out = text;
    if (bytes) *bytes = n;
    return PARE_OK;
}

pare_status pare_text_read(char **out, size_t *bytes, pare_arena *a, const char *path,
                           pare_err *err)
{
    pare_blob *b;
    pare_status st = pare_blob_open(&b, path, err);
    if (st != PARE_OK) return st;
    st = pare_text_read_blob(out, bytes, a, b, err);
    pare_blob_release(b);
    return st;
}

bool pare_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool pare_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

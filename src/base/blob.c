/* blob.c - files read whole into memory. */
#include "support.h"
#include "large_pages.h"
#include "regular_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pare_status pare_blob_open(pare_blob **out, const char *path, pare_err *err)
{
    *out = NULL;
    pare_blob *b = calloc(1, sizeof *b);
    if (!b) return pare_no_memory(err);
    b->refs = 1;
    b->path = strdup(path);
    regular r = {.fd = -1};
    pare_status st = b->path ? regular_open(&r, path, err) : pare_no_memory(err);
    if (st == PARE_OK) { /* aligned, because weights are used where they lie */
        b->block = malloc(r.bytes + block_align(r.bytes)); /* regular_open has bounded the size */
        uint8_t *const data = b->block ? align_block(b->block, r.bytes) : NULL;
        b->data = data;
        b->bytes = r.bytes;
        st = data ? regular_read(&r, data, r.bytes, err) : pare_no_memory(err);
        if (st == PARE_OK) st = regular_end(&r, err);
    }
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

static bool begins_with(const pare_blob *b, const char *bytes, size_t n)
{
    return b->bytes >= n && memcmp(b->data, bytes, n) == 0;
}

/* Editors and spreadsheets put byte order marks in front. UTF-16 is refused: read as bytes it would
 * be letters with zeros in between, and every result would be about those. */
pare_status pare_text_read_blob(char **out, size_t *bytes, pare_arena *a, const pare_blob *b,
                                pare_err *err)
{
    if (begins_with(b, "\xFF\xFE", 2) || begins_with(b, "\xFE\xFF", 2))
        return pare_fail(err, PARE_ERR_INPUT, "%s: is UTF-16; save it as UTF-8", b->path);
    const size_t skip = begins_with(b, "\xEF\xBB\xBF", 3) ? 3 : 0, n = b->bytes - skip;
    size_t size;
    char *const text = pare_add(&size, n, 1) ? pare_alloc(a, size, 1) : NULL;
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

/* zip_read.c - zip files read by their central directory, every offset and size distrusted. */
#include "zip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* No deflate stream unpacks to more: 258 bytes for two bits, so 1032 to 1. */
#define DEFLATE_MAX_RATIO 1032

#define FLAG_ENCRYPTED 1u

static uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}
static uint32_t le32(const uint8_t *p)
{
    return le16(p) | le16(p + 2) << 16;
}
static uint64_t le64(const uint8_t *p)
{
    return le32(p) | (uint64_t)le32(p + 4) << 32;
}

static bool inside(size_t total, uint64_t offset, uint64_t bytes)
{
    return offset <= total && bytes <= total - offset;
}

static pare_status damaged(pare_err *err, const char *what)
{
    return pare_fail(err, PARE_ERR_INPUT, "zip directory is damaged: %s", what);
}

typedef struct directory {
    uint64_t offset, bytes, count;
    size_t end; /* first byte after which the directory cannot reach */
} directory;

static pare_status find_directory64(directory *d, const uint8_t *b, size_t end, pare_err *err)
{
    if (end < ZIP_LOCATOR64_BYTES || le32(b + end - ZIP_LOCATOR64_BYTES) != ZIP_LOCATOR64)
        return damaged(err, "the zip64 locator is missing");
    const uint64_t at = le64(b + end - ZIP_LOCATOR64_BYTES + 8);
    if (!inside(end - ZIP_LOCATOR64_BYTES, at, ZIP_END64_BYTES) || le32(b + at) != ZIP_END64)
        return damaged(err, "the zip64 record is missing");
    const uint8_t *r = b + at;
    if (le32(r + 16) != 0 || le32(r + 20) != 0 || le64(r + 24) != le64(r + 32))
        return damaged(err, "the archive spans several disks");
    *d = (directory){le64(r + 48), le64(r + 40), le64(r + 32), (size_t)at};
    return PARE_OK;
}

/* The end record is last, after it only a comment whose length it knows. */
static pare_status find_directory(directory *d, const uint8_t *b, size_t total, pare_err *err)
{
    const size_t last = total < ZIP_END_BYTES ? 0 : total - ZIP_END_BYTES;
    const size_t first = last > 65535 ? last - 65535 : 0;
    const uint8_t *r = NULL;
    for (size_t i = last + 1; total >= ZIP_END_BYTES && !r && i-- > first;)
        if (le32(b + i) == ZIP_END && le16(b + i + 20) == last - i) r = b + i;
    if (!r) return pare_fail(err, PARE_ERR_INPUT, "is not a whole zip archive (no end record)");
    *d = (directory){le32(r + 16), le32(r + 12), le16(r + 10), (size_t)(r - b)};
    if (d->offset == UINT32_MAX || d->bytes == UINT32_MAX || d->count == UINT16_MAX) {
        const pare_status st = find_directory64(d, b, d->end, err);
        if (st != PARE_OK) return st;
    } else if (le16(r + 4) != 0 || le16(r + 6) != 0 || le16(r + 8) != le16(r + 10)) {
        return damaged(err, "the archive spans several disks");
    }
    if (!inside(d->end, d->offset, d->bytes)) return damaged(err, "it lies outside the file");
    if (d->count > d->bytes / ZIP_CENTRAL_BYTES)
        return damaged(err, "more members are claimed than it can hold");
    return PARE_OK;
}

/* Sizes and offset that are all ones are in the zip64 extra field instead, in this order. */
static bool read_sizes64(uint64_t value[3], const uint8_t *extra, size_t bytes)
{
    const bool need = value[0] == UINT32_MAX || value[1] == UINT32_MAX || value[2] == UINT32_MAX;
    for (size_t at = 0; need && at + 4 <= bytes;) {
        const size_t id = le16(extra + at), len = le16(extra + at + 2);
        const uint8_t *p = extra + at + 4;
        if (len > bytes - at - 4) return false;
        at += 4 + len;
        if (id != 1) continue;
        size_t used = 0;
        for (int i = 0; i < 3; i++) {
            if (value[i] != UINT32_MAX) continue;
            if (len - used < 8) return false;
            value[i] = le64(p + used);
            used += 8;
        }
        return true;
    }
    return !need;
}

/* Offset of the packed bytes, from the local header; its sizes may be blank, its name not. */
static pare_status read_local_header(pare_zip_member *m, const pare_zip *z, pare_err *err)
{
    const size_t name = strlen(m->name);
    size_t skip = ZIP_LOCAL_BYTES;
    bool ok = inside(z->total, m->local, skip) && le32(z->bytes + m->local) == ZIP_LOCAL;
    if (ok) {
        const uint8_t *p = z->bytes + m->local;
        skip += le16(p + 26) + le16(p + 28);
        ok = inside(z->total, m->local, skip) && le16(p + 26) == name &&
             memcmp(p + ZIP_LOCAL_BYTES, m->name, name) == 0 && le16(p + 8) == m->method;
    }
    if (!ok)
        return pare_fail(err, PARE_ERR_INPUT, "member '%.200s' is not where the directory says",
                         m->name);
    m->data = m->local + skip;
    return PARE_OK;
}

/* Reads one directory entry at *at and moves behind it; *at and end are inside the file. */
static pare_status read_entry(pare_zip_member *m, size_t *at, size_t end, const pare_zip *z,
                              pare_arena *a, pare_err *err)
{
    const uint8_t *p = z->bytes + *at;
    if (end - *at < ZIP_CENTRAL_BYTES || le32(p) != ZIP_CENTRAL)
        return damaged(err, "an entry is cut off");
    const size_t name = le16(p + 28), extra = le16(p + 30), comment = le16(p + 32);
    if (end - *at - ZIP_CENTRAL_BYTES < name + extra + comment)
        return damaged(err, "an entry is cut off");
    const char *text = (const char *)p + ZIP_CENTRAL_BYTES;
    if (memchr(text, '\0', name)) return damaged(err, "a name contains a zero byte");
    uint64_t value[3] = {le32(p + 24), le32(p + 20), le32(p + 42)};
    if (!read_sizes64(value, p + ZIP_CENTRAL_BYTES + name, extra) || value[0] > SIZE_MAX / 2 ||
        value[1] > SIZE_MAX / 2 || value[2] > SIZE_MAX / 2)
        return damaged(err, "the size of a member makes no sense");
    m->flags = le16(p + 8);
    m->method = le16(p + 10);
    m->crc = le32(p + 16);
    m->size = (size_t)value[0];
    m->packed = (size_t)value[1];
    m->local = (size_t)value[2];
    m->name = pare_strndup(a, text, name);
    if (!m->name) return pare_no_memory(err);
    *at += ZIP_CENTRAL_BYTES + name + extra + comment;
    return read_local_header(m, z, err);
}

static int by_offset(const void *x, const void *y)
{
    const pare_zip_member *const *a = x, *const *b = y;
    return ((*a)->local > (*b)->local) - ((*a)->local < (*b)->local);
}

static int by_name(const void *x, const void *y)
{
    const pare_zip_member *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

/* No name twice, no member over another, each one before the directory and so inside the file. */
static pare_status check_disjoint(const pare_zip *z, size_t directory_at, pare_arena *a,
                                  pare_err *err)
{
    const pare_zip_member **order = pare_alloc(a, z->count, sizeof(pare_zip_member *));
    if (!order) return pare_no_memory(err);
    for (size_t i = 0; i < z->count; i++) order[i] = &z->member[i];
    qsort(order, z->count, sizeof(pare_zip_member *), by_name);
    for (size_t i = 1; i < z->count; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            return pare_fail(err, PARE_ERR_INPUT, "member '%.200s' is there twice", order[i]->name);
    qsort(order, z->count, sizeof(pare_zip_member *), by_offset);
    for (size_t i = 0; i < z->count; i++) {
        const size_t limit = i + 1 < z->count ? order[i + 1]->local : directory_at;
        if (order[i]->data > limit || order[i]->packed > limit - order[i]->data)
            return pare_fail(err, PARE_ERR_INPUT, "member '%.200s' reaches into what follows it",
                             order[i]->name);
    }
    return PARE_OK;
}

pare_status pare_zip_scan(pare_zip *z, pare_arena *a, const uint8_t *bytes, size_t total,
                          pare_err *err)
{
    *z = (pare_zip){.bytes = bytes, .total = total};
    directory d = {0};
    pare_status st = find_directory(&d, bytes, total, err);
    if (st != PARE_OK) return st;
    z->member = pare_alloc(a, (size_t)d.count, sizeof *z->member);
    if (!z->member) return pare_no_memory(err);
    size_t at = (size_t)d.offset;
    const size_t end = at + (size_t)d.bytes;
    for (; st == PARE_OK && z->count < d.count; z->count++)
        st = read_entry(&z->member[z->count], &at, end, z, a, err);
    if (st != PARE_OK) return st;
    if (at != end) return damaged(err, "it has bytes after the last entry");
    return check_disjoint(z, (size_t)d.offset, a, err);
}

/* Inflates exactly m->size bytes from exactly m->packed. */
static pare_status inflate_member(uint8_t *to, const uint8_t *from, const pare_zip_member *m,
                                  pare_err *err)
{
    z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK) return pare_no_memory(err);
    size_t in_left = m->packed, out_left = m->size;
    /* zlib wants a mutable pointer but only reads through it. */
    s.next_in = (Bytef *)(uintptr_t)from;
    s.next_out = to;
    int rc = Z_OK;
    while (rc == Z_OK) { /* zlib counts in 32 bits: refill in slices */
        const uInt in_now = in_left < INT_MAX ? (uInt)in_left : INT_MAX;
        const uInt out_now = out_left < INT_MAX ? (uInt)out_left : INT_MAX;
        s.avail_in = in_now;
        s.avail_out = out_now;
        rc = inflate(&s, Z_NO_FLUSH);
        in_left -= in_now - s.avail_in;
        out_left -= out_now - s.avail_out;
        if (rc == Z_OK && s.avail_in == in_now && s.avail_out == out_now) rc = Z_BUF_ERROR;
    }
    inflateEnd(&s);
    if (rc == Z_MEM_ERROR) return pare_no_memory(err);
    if (rc == Z_STREAM_END && in_left == 0 && out_left == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "member '%.200s': deflate data is damaged", m->name);
}

pare_status pare_zip_unpack(const uint8_t **out, bool *in_arena, const pare_zip *z,
                            const pare_zip_member *m, pare_arena *a, pare_err *err)
{
    if (m->flags & FLAG_ENCRYPTED)
        return pare_fail(err, PARE_ERR_INPUT, "member '%.200s' is encrypted", m->name);
    if (m->method != ZIP_STORED && m->method != ZIP_DEFLATED)
        return pare_fail(err, PARE_ERR_INPUT,
                         "member '%.200s' is packed with zip method %u; only stored (0) and "
                         "deflated (8) can be read",
                         m->name, m->method);
    const bool possible =
        m->method == ZIP_STORED ? m->size == m->packed : m->size / DEFLATE_MAX_RATIO <= m->packed;
    if (!possible)
        return pare_fail(err, PARE_ERR_INPUT,
                         "member '%.200s' claims %zu bytes, its %zu packed bytes cannot hold them",
                         m->name, m->size, m->packed);
    const uint8_t *from = z->bytes + m->data;
    *in_arena = m->method == ZIP_DEFLATED;
    if (*in_arena) {
        uint8_t *to = pare_alloc(a, m->size, 1);
        const pare_status st = to ? inflate_member(to, from, m, err) : pare_no_memory(err);
        if (st != PARE_OK) return st;
        from = to;
    }
    if (crc32_z(0, from, m->size) != m->crc)
        return pare_fail(err, PARE_ERR_INPUT, "member '%.200s': checksum (CRC-32) is wrong",
                         m->name);
    *out = from;
    return PARE_OK;
}

/* zip_write.c - zip files written: same members, same bytes (the date is always 1980-01-01). */
#include "zip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define DOS_DATE      0x0021u /* 1980-01-01, the first a zip can say */
#define FLAG_UTF8     0x0800u
#define VERSION       20u
#define VERSION64     45u
#define EXTRA64_LOCAL 20u /* id, length, two sizes */
#define EXTRA64_FULL  28u /* and the offset */

static uint8_t *put16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}

static uint8_t *put32(uint8_t *p, size_t v)
{
    return put16(put16(p, v), v >> 16);
}
static uint8_t *put64(uint8_t *p, size_t v)
{
    return put32(put32(p, v), v >> 32);
}

static pare_status emit(pare_zip_writer *w, const void *data, size_t bytes, pare_err *err)
{
    w->offset += bytes;
    return pare_out_write(w->out, data, bytes, err);
}

pare_status pare_zip_begin(pare_zip_writer *w, pare_out *out, pare_arena *a, size_t members,
                           pare_err *err)
{
    *w = (pare_zip_writer){.out = out, .arena = a, .capacity = members};
    w->member = pare_alloc(a, members, sizeof *w->member);
    return w->member ? PARE_OK : pare_no_memory(err);
}

/* The header of a member, before its data or, with `central`, in the directory; then its name, and
 * the sizes that do not fit into 32 bits. */
static pare_status write_header(pare_zip_writer *w, const pare_zip_member *m, bool central,
                                pare_err *err)
{
    uint8_t head[ZIP_CENTRAL_BYTES] = {0}, extra[EXTRA64_FULL];
    const bool big =
        w->always64 || m->size >= UINT32_MAX || m->packed >= UINT32_MAX || m->local >= UINT32_MAX;
    const size_t extra_bytes = central ? EXTRA64_FULL : EXTRA64_LOCAL;
    const size_t version = big ? VERSION64 : VERSION;
    uint8_t *p = put32(head, central ? ZIP_CENTRAL : ZIP_LOCAL);
    if (central) p = put16(p, version); /* of the writer; then what a reader needs */
    p = put16(p, version);
    p = put16(p, m->flags);
    p = put16(p, m->method);
    p = put16(p, 0); /* time */
    p = put16(p, DOS_DATE);
    p = put32(p, m->crc);
    p = put32(p, big ? UINT32_MAX : m->packed);
    p = put32(p, big ? UINT32_MAX : m->size);
    p = put16(p, strlen(m->name));
    put16(p, big ? extra_bytes : 0);
    if (central) put32(head + 42, big ? UINT32_MAX : m->local);
    p = put16(put16(extra, 1), extra_bytes - 4);
    p = put64(put64(p, m->size), m->packed);
    if (central) put64(p, m->local);
    pare_status st = emit(w, head, central ? ZIP_CENTRAL_BYTES : ZIP_LOCAL_BYTES, err);
    if (st == PARE_OK) st = emit(w, m->name, strlen(m->name), err);
    if (st == PARE_OK && big) st = emit(w, extra, extra_bytes, err);
    return st;
}

/* Compresses one piece; `last` ends the stream. The output takes *left more bytes. zlib counts in
 * 32 bits, hence the slices. */
static int deflate_piece(z_stream *s, size_t *left, const uint8_t *data, size_t bytes, bool last)
{
    int rc = Z_OK;
    s->next_in = (Bytef *)(uintptr_t)data; /* zlib only reads through it */
    while (rc == Z_OK && (bytes > 0 || last)) {
        const uInt in_now = bytes < INT_MAX ? (uInt)bytes : INT_MAX;
        const uInt out_now = *left < INT_MAX ? (uInt)*left : INT_MAX;
        s->avail_in = in_now;
        s->avail_out = out_now;
        rc = deflate(s, last && bytes == in_now ? Z_FINISH : Z_NO_FLUSH);
        bytes -= in_now - s->avail_in;
        *left -= out_now - s->avail_out;
    }
    return rc;
}

/* head and body as one deflate stream, malloc'ed; NULL when memory is out. */
static uint8_t *deflate_both(size_t *packed, const void *head, size_t head_bytes, const void *body,
                             size_t body_bytes)
{
    z_stream s = {0};
    if (deflateInit2(&s, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    const size_t most = deflateBound(&s, head_bytes + body_bytes);
    uint8_t *out = malloc(most);
    size_t left = most;
    s.next_out = out;
    int rc = out ? deflate_piece(&s, &left, head, head_bytes, false) : Z_MEM_ERROR;
    if (rc == Z_OK) rc = deflate_piece(&s, &left, body, body_bytes, true);
    deflateEnd(&s);
    *packed = most - left;
    if (rc == Z_STREAM_END) return out;
    free(out);
    return NULL;
}

pare_status pare_zip_add(pare_zip_writer *w, const char *name, const void *head, size_t head_bytes,
                         const void *body, size_t body_bytes, bool deflated, pare_err *err)
{
    PARE_ASSERT(w->count < w->capacity);
    pare_zip_member *m = &w->member[w->count++];
    m->name = pare_strdup(w->arena, name);
    if (!m->name) return pare_no_memory(err);
    if (strlen(name) > UINT16_MAX)
        return pare_fail(err, PARE_ERR_INPUT, "member name '%.60s...' is too long", name);
    m->flags = 0;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c > 127) m->flags = FLAG_UTF8;
    m->method = deflated ? ZIP_DEFLATED : ZIP_STORED;
    m->local = w->offset;
    m->size = m->packed = head_bytes + body_bytes;
    m->crc = (uint32_t)crc32_z(0, head, head_bytes);
    /* An empty body may be NULL, which zlib takes as "start anew". */
    if (body_bytes) m->crc = (uint32_t)crc32_z(m->crc, body, body_bytes);
    uint8_t *packed =
        deflated ? deflate_both(&m->packed, head, head_bytes, body, body_bytes) : NULL;
    if (deflated && !packed) return pare_no_memory(err);
    pare_status st = write_header(w, m, false, err);
    if (st == PARE_OK)
        st = emit(w, deflated ? packed : head, deflated ? m->packed : head_bytes, err);
    if (st == PARE_OK && !deflated) st = emit(w, body, body_bytes, err);
    free(packed);
    return st;
}

static pare_status write_end64(pare_zip_writer *w, size_t start, size_t bytes, pare_err *err)
{
    uint8_t rec[ZIP_END64_BYTES + ZIP_LOCATOR64_BYTES];
    const size_t at = w->offset;
    uint8_t *p = put64(put32(rec, ZIP_END64), ZIP_END64_BYTES - 12);
    p = put16(put16(p, VERSION64), VERSION64);
    p = put32(put32(p, 0), 0); /* disks */
    p = put64(put64(p, w->count), w->count);
    p = put64(put64(p, bytes), start);
    p = put32(put32(p, ZIP_LOCATOR64), 0);
    put32(put64(p, at), 1);
    return emit(w, rec, sizeof rec, err);
}

pare_status pare_zip_end(pare_zip_writer *w, pare_err *err)
{
    const size_t start = w->offset;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < w->count && st == PARE_OK; i++)
        st = write_header(w, &w->member[i], true, err);
    if (st != PARE_OK) return st;
    const size_t bytes = w->offset - start;
    const bool big =
        w->always64 || start >= UINT32_MAX || bytes >= UINT32_MAX || w->count >= UINT16_MAX;
    if (big) st = write_end64(w, start, bytes, err);
    if (st != PARE_OK) return st;
    uint8_t rec[ZIP_END_BYTES] = {0};
    put32(rec, ZIP_END);
    put16(put16(rec + 8, big ? UINT16_MAX : w->count), big ? UINT16_MAX : w->count);
    put32(put32(rec + 12, big ? UINT32_MAX : bytes), big ? UINT32_MAX : start);
    return emit(w, rec, sizeof rec, err);
}

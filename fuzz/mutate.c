/* Mutations that keep lengths true, and checksums made true again. */
#include "fuzz.h"
#include "../src/base/zip.h"
#include "model/header_checksum.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LENGTH_BYTES 8u
#define MOST_TEXT    65536u

static size_t header_bytes(const uint8_t *data, size_t size)
{
    uint64_t n = 0;
    for (size_t i = LENGTH_BYTES; i-- > 0;) n = n << 8 | data[i];
    return n <= size - LENGTH_BYTES ? (size_t)n : size;
}

static size_t any_byte(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, max_size);
}

size_t fuzz_mutate_inside(uint8_t *data, size_t *size, size_t max_size, size_t at, size_t n,
                          fuzz_mutator *mutate, unsigned seed)
{
    const size_t rest = *size - at - n;
    if (n > MOST_TEXT || at + rest >= max_size) return n; /* no room: nothing changes */
    size_t most = max_size - at - rest;
    if (most > MOST_TEXT) most = MOST_TEXT;
    uint8_t *const part =
        malloc(most > n ? most : n + 1); /* not static: mutators call one another */
    FUZZ_EXPECT(part);
    memcpy(part, data + at, n);
    const size_t now = mutate(part, n, most, seed);
    memmove(data + at + now, data + at + n, rest);
    memcpy(data + at, part, now);
    free(part);
    *size = at + now + rest;
    return now;
}

size_t fuzz_mutate_safetensors(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const size_t n = size > LENGTH_BYTES ? header_bytes(data, size) : size;
    if (n >= size || size > max_size || seed % 4 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    const size_t now = fuzz_mutate_inside(data, &size, max_size, LENGTH_BYTES, n, any_byte, seed);
    for (size_t i = 0; i < LENGTH_BYTES; i++) data[i] = (uint8_t)((uint64_t)now >> (8 * i));
    return size;
}

/* Where the value behind the seed-th colon begins, and its length up to the next comma or bracket. */
static size_t find_value(const uint8_t *data, size_t size, unsigned seed, size_t *length)
{
    size_t colons = 0, at = 0;
    for (size_t i = 0; i < size; i++) colons += data[i] == ':';
    if (colons == 0) return size;
    for (size_t left = seed % colons + 1; left > 0; at++) left -= data[at] == ':';
    size_t end = at;
    while (end < size && !strchr(",}]{[", data[end])) end++;
    *length = end - at;
    return at;
}

size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const char *const values[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "4",
                                         "5",
                                         "-1",
                                         "0.5",
                                         "1e308",
                                         "1e-320",
                                         "9007199254740993",
                                         "null",
                                         "true",
                                         "false",
                                         "\"\"",
                                         "{}",
                                         "[]",
                                         "[1]",
                                         "{\"a\":1}"};
    size_t n = 0;
    const size_t at = size <= max_size ? find_value(data, size, seed / 32, &n) : size;
    const char *const value = values[seed / 2 % (sizeof values / sizeof *values)];
    const size_t length = strlen(value);
    if (seed % 2 == 0 || at >= size || size - n + length > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memmove(data + at + length, data + at + n, size - at - n);
    memcpy(data + at, value, length);
    return size - n + length;
}

fuzz_parts fuzz_split(const uint8_t *data, size_t size)
{
    if (size < 2) return (fuzz_parts){data, data, 0, 0};
    size_t n = (size_t)data[0] | (size_t)data[1] << 8;
    if (n > size - 2) n = size - 2;
    return (fuzz_parts){data + 2, data + 2 + n, n, size - 2 - n};
}

size_t fuzz_mutate_parts(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                         fuzz_mutator *second)
{
    const fuzz_parts p = fuzz_split(data, size);
    if (size < 2 || size > max_size) return LLVMFuzzerMutate(data, size, max_size);
    if (seed % 3 != 0 && 2 + p.na < max_size) {
        uint8_t *const b = data + 2 + p.na;
        const size_t capacity = max_size - 2 - p.na;
        return 2 + p.na +
               (second ? second(b, p.nb, capacity, seed / 3) : LLVMFuzzerMutate(b, p.nb, capacity));
    }
    const size_t most = max_size < MOST_TEXT ? max_size : MOST_TEXT - 1;
    const size_t now =
        fuzz_mutate_inside(data, &size, most < size ? size : most, 2, p.na, any_byte, seed);
    data[0] = (uint8_t)now;
    data[1] = (uint8_t)(now >> 8);
    return size;
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}

/* Tickets stand at the end of a model, one behind the other. */
static void reseal_tickets(uint8_t *data, size_t size)
{
    static const char magic[] = "PARETKT1";
    enum { LEAST = 52 };
    uint8_t *at = memmem(data, size, magic, sizeof magic - 1);
    while (at) {
        const size_t left = size - (size_t)(at - data);
        uint8_t *const next = memmem(at + 1, left - 1, magic, sizeof magic - 1);
        const size_t bytes = next ? (size_t)(next - at) : left;
        if (bytes >= LEAST) put32(at + bytes - 4, (uint32_t)crc32_z(0, at, bytes - 4));
        at = next;
    }
}

void fuzz_reseal_model(uint8_t *data, size_t size)
{
    reseal_tickets(data, size);
    const size_t n = size > LENGTH_BYTES ? header_bytes(data, size) : size;
    char *const header = (char *)data + LENGTH_BYTES;
    char *const at = n < size ? checksum_find(header, n) : NULL;
    pare_err err;
    if (!at) return;
    memset(at, '0', CHECKSUM_DIGITS);
    FUZZ_EXPECT(checksum_set(header, n, &err) == PARE_OK);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Writes the checksum of a stored member into its header and into the directory's records that
 * point to that header. */
static void reseal_member(uint8_t *data, size_t size, const pare_zip_member *m, uint32_t crc)
{
    put32(data + m->local + 14, crc);
    for (uint8_t *p = data, *const end = data + size; (p = memchr(p, 'P', (size_t)(end - p))); p++)
        if (end - p < ZIP_CENTRAL_BYTES)
            return;
        else if (get32(p) == ZIP_CENTRAL && get32(p + 42) == m->local)
            put32(p + 16, crc);
}

/* Stored members only: for a deflated one the bytes would have to be unpacked here. */
bool fuzz_reseal_npz(uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    pare_err err;
    pare_zip zip;
    bool changed = false;
    FUZZ_EXPECT(a);
    if (pare_zip_scan(&zip, a, data, size, &err) == PARE_OK)
        for (size_t i = 0; i < zip.count; i++) {
            const pare_zip_member *const m = &zip.member[i];
            if (m->method != ZIP_STORED) continue;
            const uint32_t crc = (uint32_t)crc32_z(0, data + m->data, m->packed);
            if (crc == m->crc && crc == get32(data + m->local + 14)) continue;
            reseal_member(data, size, m, crc);
            changed = true;
        }
    pare_arena_free(a);
    return changed;
}

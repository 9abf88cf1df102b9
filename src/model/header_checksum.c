/* header_checksum.c - the checksum of a model file's header (header_checksum.h). */
#include "header_checksum.h"
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

char *checksum_find(char *header, size_t bytes)
{
    static const char key[] = "\"" CHECKSUM_KEY "\"";
    char *p = memmem(header, bytes, key, sizeof key - 1);
    char *const end = header + bytes;
    if (!p) return NULL;
    p += sizeof key - 1;
    while (p < end && is_blank(*p)) p++;
    if (p == end || *p++ != ':') return NULL;
    while (p < end && is_blank(*p)) p++;
    if (p == end || *p++ != '"') return NULL;
    return (size_t)(end - p) > CHECKSUM_DIGITS && p[CHECKSUM_DIGITS] == '"' ? p : NULL;
}

pare_status checksum_set(char *header, size_t bytes, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    char *const at = checksum_find(header, bytes);
    PARE_ASSERT(at);
    const pare_status st = pare_sha256_of(hex, header, bytes, err);
    if (!st) memcpy(at, hex, CHECKSUM_DIGITS);
    return st;
}

pare_status checksum_check(const char *header, size_t bytes, pare_err *err)
{
    char claimed[PARE_SHA256_HEX] = {0}, hex[PARE_SHA256_HEX];
    char *const copy = malloc(bytes ? bytes : 1);
    if (!copy) return pare_no_memory(err);
    memcpy(copy, header, bytes);
    char *const at = checksum_find(copy, bytes);
    pare_status st = PARE_OK;
    if (at) {
        memcpy(claimed, at, CHECKSUM_DIGITS);
        memset(at, '0', CHECKSUM_DIGITS);
        st = pare_sha256_of(hex, copy, bytes, err);
    }
    free(copy);
    if (st) return st;
    if (!at)
        return pare_fail(err, PARE_ERR_INPUT, "the header has no checksum (key " CHECKSUM_KEY ")");
    if (strcmp(claimed, hex) != 0)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the header was changed: its checksum says %.8s, its bytes %.8s", claimed,
                         hex);
    return PARE_OK;
}

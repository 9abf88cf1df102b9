#include "header_checksum.h"
#include <stdlib.h>
#include <string.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

char *seal_find(char *header, size_t bytes)
{
    static const char key[] = "\"" SEAL_KEY "\"";
    char *p = memmem(header, bytes, key, sizeof key - 1);
    char *const end = header + bytes;
    if (!p) return NULL;
    p += sizeof key - 1;
    while (p < end && blank(*p)) p++;
    if (p == end || *p++ != ':') return NULL;
    while (p < end && blank(*p)) p++;
    if (p == end || *p++ != '"') return NULL;
    return (size_t)(end - p) > SEAL_DIGITS && p[SEAL_DIGITS] == '"' ? p : NULL;
}

pare_status seal_set(char *header, size_t bytes, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    char *const at = seal_find(header, bytes);
    PARE_ASSERT(at);
    const pare_status st = pare_sha256_of(hex, header, bytes, err);
    if (!st) memcpy(at, hex, SEAL_DIGITS);
    return st;
}

pare_status seal_check(const char *header, size_t bytes, pare_err *err)
{
    char claimed[PARE_SHA256_HEX] = {0}, hex[PARE_SHA256_HEX];
    char *const copy = malloc(bytes ? bytes : 1);
    if (!copy) return pare_no_memory(err);
    memcpy(copy, header, bytes);
    char *const at = seal_find(copy, bytes);
    pare_status st = PARE_OK;
    if (at) {
        memcpy(claimed, at, SEAL_DIGITS);
        memset(at, '0', SEAL_DIGITS);
        st = pare_sha256_of(hex, copy, bytes, err);
    }
    free(copy);
    if (st) return st;
    if (!at) return pare_fail(err, PARE_ERR_INPUT, "the header has no checksum (key " SEAL_KEY ")");
    if (strcmp(claimed, hex) != 0)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the header was changed: its checksum says %.8s, its bytes %.8s", claimed,
                         hex);
    return PARE_OK;
}

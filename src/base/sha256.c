/* sha256.c - SHA-256 through libcrypto. */
#include "support.h"
#include "regular_file.h"

#include <openssl/evp.h>
#include <stdlib.h>

pare_status pare_sha256_begin(pare_sha256 *h, pare_err *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    h->state = ctx;
    if (!ctx) return pare_no_memory(err);
    if (EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1) return PARE_OK;
    EVP_MD_CTX_free(ctx);
    h->state = NULL;
    return pare_fail(err, PARE_ERR_MEMORY, "libcrypto cannot start SHA-256");
}

void pare_sha256_add(pare_sha256 *h, const void *data, size_t bytes)
{
    /* A begun SHA-256 in memory has no way to fail. */
    PARE_ASSERT(EVP_DigestUpdate(h->state, data, bytes) == 1);
}

void pare_sha256_end(pare_sha256 *h, char hex[PARE_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    PARE_ASSERT(EVP_DigestFinal_ex(h->state, sum, &n) == 1 && n == 32);
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * n] = '\0';
    EVP_MD_CTX_free(h->state);
    h->state = NULL;
}

pare_status pare_sha256_of(char hex[PARE_SHA256_HEX], const void *data, size_t bytes, pare_err *err)
{
    pare_sha256 h;
    const pare_status st = pare_sha256_begin(&h, err);
    if (st != PARE_OK) return st;
    pare_sha256_add(&h, data, bytes);
    pare_sha256_end(&h, hex);
    return PARE_OK;
}

/* Piece by piece: a file that is only hashed needs no memory of its size. */
pare_status pare_sha256_file(char hex[PARE_SHA256_HEX], const char *path, pare_err *err)
{
    enum { PIECE = 1 << 18 };
    pare_sha256 h;
    regular r;
    pare_status st = regular_open(&r, path, err);
    if (st != PARE_OK) return st;
    void *const piece = malloc(PIECE);
    st = piece ? pare_sha256_begin(&h, err) : pare_no_memory(err);
    if (st == PARE_OK) {
        while (st == PARE_OK && r.done < r.bytes) {
            const size_t left = r.bytes - r.done, n = left < PIECE ? left : PIECE;
            st = regular_read(&r, piece, n, err);
            if (st == PARE_OK) pare_sha256_add(&h, piece, n);
        }
        if (st == PARE_OK) st = regular_end(&r, err);
        pare_sha256_end(&h, hex);
    }
    free(piece);
    regular_close(&r);
    return st;
}

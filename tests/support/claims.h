/* claims.h - looking claims up in a certificate, for tests. */
#ifndef CLAIMS_H
#define CLAIMS_H
#include <pare/cert.h>
#include <pare_test.h>

/* The claim of that kind with `before` others of it before it; NULL if there is none. */
static inline const pare_claim *claim_at(const pare_cert *c, pare_kind kind, size_t before)
{
    for (size_t i = 0; i < c->nclaims; i++)
        if (c->claims[i].kind == kind && before-- == 0) return &c->claims[i];
    return NULL;
}

static inline size_t claims_of(const pare_cert *c, pare_kind kind)
{
    size_t n = 0;
    while (claim_at(c, kind, n)) n++;
    return n;
}

static inline size_t claims_in(const pare_cert *c, pare_section section)
{
    size_t n = 0;
    for (size_t i = 0; i < c->nclaims; i++) n += pare_kinds[c->claims[i].kind].section == section;
    return n;
}

/* The first claim of that kind, which must be there. */
static inline const pare_claim *claim_must(const pare_cert *c, pare_kind kind)
{
    const pare_claim *const claim = pare_cert_find(c, kind);
    if (!claim) fail_msg("the certificate has no claim %s", pare_kinds[kind].name);
    return claim;
}

/* inf: no such bound is claimed. */
static inline double claim_bound(const pare_cert *c, pare_kind kind)
{
    const pare_claim *const claim = pare_cert_find(c, kind);
    return claim ? claim->value : INFINITY;
}

static inline double claim_value(const pare_cert *c, pare_kind kind)
{
    return claim_must(c, kind)->value;
}
#endif

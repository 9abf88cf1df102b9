/* Numbers of calls as closed forms: what a plan counts must be what they say. */
#include "call_counts.h"

static uint64_t parts_of(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* A rectangle is two staircases, but for one query or one key. */
static uint64_t stairs_of_rect(uint64_t nq, uint64_t nk)
{
    return !nq || !nk ? 0 : nq > 1 && nk > 1 ? 2 : 1;
}

static uint64_t full_on_causal(uint64_t n, uint64_t m)
{
    const uint64_t t = n / m, rest = n % m;
    return t * t * stairs_of_rect(m, m) + t * stairs_of_rect(m, rest) +
           t * stairs_of_rect(rest, m) + stairs_of_rect(rest, rest);
}

static uint64_t causal_on_causal(uint64_t n, uint64_t m)
{
    const uint64_t t = parts_of(n, m), last = n - (t - 1) * m;
    return t + (t - 1) * (t - 2) / 2 * stairs_of_rect(m, m) + (t - 1) * stairs_of_rect(last, m);
}

/* Window r with s sinks in front, calls of m keys, none packed; 0 where sinks are not fused. */
static uint64_t window_on_causal(uint64_t n, uint64_t m, uint64_t r, uint64_t s)
{
    const bool fuse = s > 0 && s <= (m - 1) / 2;
    if (s && !fuse) return 0;
    const uint64_t w = r < m - s ? r : m - s, t = parts_of(n, w);
    uint64_t calls = t;
    if (w >= 2 && t > r / w) calls += t - r / w;
    for (uint64_t b = 0; b < n; b += w) {
        const uint64_t nq = n - b < w ? n - b : w, middle = b < r - w ? b : r - w;
        calls += middle / m * stairs_of_rect(nq, m) + stairs_of_rect(nq, middle % m);
        if (s && b + 1 < r + s && b + nq > r) calls++; /* sinks by themselves */
    }
    return calls;
}

uint64_t count_formula(const call_rule *r, size_t n, const pare_pattern *p)
{
    if (!n) return 0;
    if (r->plain) return 1;
    const uint64_t m = r->m - (r->reference ? 1 : 0), k = parts_of(n, r->m), t = parts_of(n, m);
    const bool causal = p->kind == PARE_CAUSAL || (p->kind == PARE_WINDOW && p->window >= n);
    if (r->one_vector) {
        const uint64_t blocks = parts_of(n, (r->m - 1) / 2);
        return blocks * (blocks - 1) / 2 + parts_of(blocks, 2);
    }
    if (r->kind == CALL_TILE && !r->reference)
        return p->kind == PARE_FULL ? k * k : causal ? k * (k + 1) / 2 : 0;
    if (r->kind == CALL_TILE) return p->kind == PARE_FULL ? k * t : causal ? t * (t + 1) / 2 : 0;
    if (r->kind == CALL_FULL)
        return p->kind != PARE_FULL ? 0 : r->leave_remainder ? k * (n / m) : k * t;
    if (r->m < 3) return 0;
    if (causal) return causal_on_causal(n, m); /* packed or not: no two of its tiles fit together */
    if (r->pack) return 0;
    if (p->kind == PARE_FULL) return full_on_causal(n, m);
    return p->kind == PARE_WINDOW ? window_on_causal(n, m, p->window, p->sinks) : 0;
}

uint64_t count_paper(size_t n, uint32_t m, const pare_pattern *p)
{
    if (m < 3 || !n) return 0;
    if (p->kind == PARE_FULL || p->kind == PARE_CAUSAL) {
        const uint64_t t = parts_of(n, (m - 1) / 2);
        return t * (t + 1);
    }
    if (p->kind != PARE_WINDOW || p->window + 1 >= m) return 0;
    const uint64_t keys = m - 1, step = m - p->window;
    const uint64_t chunks = n > keys ? 1 + parts_of(n - keys, step) : 1;
    const uint64_t last = n - (chunks - 1) * step;
    uint64_t calls = 4 * chunks - (last <= p->window ? 2 : 0);
    if (p->sinks && n > p->window) {
        if (p->sinks + 1 >= m) return 0;
        calls += 2 * parts_of(n - p->window, m - 1 - p->sinks);
    }
    return calls;
}

/* Up to m results of a row are merged at once; more of them first become fewer, m - 1 to a call
 * that also holds a reference. */
uint64_t count_merge(size_t n, uint32_t m, uint64_t parts, uint64_t heads, uint64_t capacity,
                     uint64_t *rounds)
{
    uint64_t calls = 0;
    if (parts < 2 || m < 2 || (parts > m && m < 3)) return 0;
    for (; parts > m; (*rounds)++) {
        const uint64_t groups = parts_of(parts, m - 1);
        calls += parts_of(heads * n * groups, capacity);
        parts = groups;
    }
    ++*rounds;
    return calls + parts_of(heads * parts_of(n, m / parts), capacity);
}

size_t paper_parts(size_t n, uint32_t m, const pare_pattern *p)
{
    if (p->kind == PARE_WINDOW) return n <= p->window ? 1 : p->sinks ? 3 : 2;
    return (size_t)parts_of(n, (m - 1) / 2);
}

uint64_t count_aggregation(size_t n, uint32_t m, uint64_t parts, uint64_t *rounds)
{
    uint64_t calls = 0;
    for (; parts > 1; ++*rounds) {
        const uint64_t size = parts <= m ? parts : m, groups = parts_of(parts, size);
        calls += parts_of(n * groups, m / size);
        parts = groups;
    }
    return calls;
}

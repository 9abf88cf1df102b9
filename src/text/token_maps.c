/* token_maps.c - hash tables of the tokenizers, open addressing (token_maps.h). */
#include "token_maps.h"
#include <string.h>

/* Open addressing at half load: the tables never grow after a vocabulary is read. */
static size_t slots_for(size_t count)
{
    size_t size = 16;
    while (size < count * 2) size *= 2;
    return size;
}

static uint64_t hash_bytes(uint64_t h, pare_piece p)
{
    for (size_t i = 0; i < p.n; i++) h = (h ^ (uint8_t)p.s[i]) * UINT64_C(0x100000001b3);
    return h;
}

static size_t first_slot(uint64_t h, size_t mask)
{
    return (size_t)((h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
}

/* The slot that holds a + b, or the free one where it would go. */
static size_t text_slot(const pare_text_map *m, pare_piece a, pare_piece b)
{
    const uint64_t h = hash_bytes(hash_bytes(UINT64_C(0xcbf29ce484222325), a), b);
    size_t i = first_slot(h, m->mask);
    for (; m->slot[i]; i = (i + 1) & m->mask) {
        const pare_piece p = m->piece[m->slot[i] - 1];
        if (p.n == a.n + b.n && memcmp(p.s, a.s, a.n) == 0 && memcmp(p.s + a.n, b.s, b.n) == 0)
            break;
    }
    return i;
}

pare_text_map pare_text_map_new(pare_arena *a, const pare_piece *piece, size_t count)
{
    PARE_ASSERT(count < UINT32_MAX);
    const size_t size = slots_for(count);
    return (pare_text_map){piece, pare_alloc(a, size, sizeof(uint32_t)), size - 1};
}

int64_t pare_text_map_put(pare_text_map *m, size_t id)
{
    const size_t i = text_slot(m, m->piece[id], (pare_piece){"", 0});
    if (m->slot[i]) return (int64_t)m->slot[i] - 1;
    m->slot[i] = (uint32_t)(id + 1);
    return -1;
}

void pare_text_map_set(pare_text_map *m, size_t id)
{
    m->slot[text_slot(m, m->piece[id], (pare_piece){"", 0})] = (uint32_t)(id + 1);
}

int64_t pare_text_map_find(const pare_text_map *m, pare_piece a, pare_piece b)
{
    return (int64_t)m->slot[text_slot(m, a, b)] - 1;
}

static size_t pair_slot(const pare_pair_map *m, uint64_t key)
{
    size_t i = first_slot(key, m->mask);
    while (m->value[i] && m->key[i] != key) i = (i + 1) & m->mask;
    return i;
}

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

pare_pair_map pare_pair_map_new(pare_arena *a, size_t count)
{
    const size_t size = slots_for(count);
    pare_pair_map m = {pare_alloc(a, size, sizeof(uint64_t)), pare_alloc(a, size, sizeof(int32_t)),
                       size - 1};
    if (!m.value) m.key = NULL;
    return m;
}

void pare_pair_map_put(pare_pair_map *m, int32_t left, int32_t right, int32_t id)
{
    const uint64_t key = pair_key(left, right);
    const size_t i = pair_slot(m, key);
    m->key[i] = key;
    m->value[i] = id + 1;
}

int32_t pare_pair_map_find(const pare_pair_map *m, int32_t left, int32_t right)
{
    return m->value[pair_slot(m, pair_key(left, right))] - 1;
}

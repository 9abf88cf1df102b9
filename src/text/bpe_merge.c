/* bpe_merge.c - the merges of byte-pair encoding, by a heap over a linked list (bpe_merge.h). */
#include "bpe_merge.h"

#define NOWHERE UINT32_MAX

static bool comes_first(const pare_merge_item *a, const pare_merge_item *b)
{
    return a->key > b->key || (a->key == b->key && a->at < b->at);
}

/* Puts the node `at` and its right neighbor on the heap, where they may merge. */
static void push_pair(pare_merger *m, uint32_t at)
{
    if (at == NOWHERE || m->node[at].next == NOWHERE) return;
    pare_merge_item item = {0, at, m->node[at].id, m->node[m->node[at].next].id, -1};
    item.into = m->pair(m->self, item.left, item.right, &item.key);
    if (item.into < 0) return;
    size_t i = m->items++;
    while (i > 0 && comes_first(&item, &m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = item;
}

static pare_merge_item pop_pair(pare_merger *m)
{
    const pare_merge_item first = m->heap[0], last = m->heap[--m->items];
    size_t i = 0;
    for (size_t child = 1; child < m->items; child = 2 * i + 1) {
        if (child + 1 < m->items && comes_first(&m->heap[child + 1], &m->heap[child])) child++;
        if (!comes_first(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return first;
}

pare_status pare_merge(pare_merger *m, int32_t *ids, size_t *n, pare_err *err)
{
    if (*n < 2) return PARE_OK;
    if (*n >= NOWHERE)
        return pare_fail(err, PARE_ERR_INPUT, "text of %zu symbols is too long to encode", *n);
    if (*n > m->capacity) {
        /* The heap: n - 1 pairs at first, and at most n - 1 merges that add two more each. */
        const size_t capacity = *n < 64 ? 64 : *n > SIZE_MAX / 8 ? *n : *n + *n / 2;
        m->node = pare_alloc(m->arena, capacity, sizeof(pare_merge_node));
        m->heap = pare_alloc(m->arena, capacity, 3 * sizeof(pare_merge_item));
        m->capacity = m->node && m->heap ? capacity : 0;
        if (!m->capacity) return pare_no_memory(err);
    }
    for (uint32_t i = 0; i < *n; i++)
        m->node[i] = (pare_merge_node){ids[i], i ? i - 1 : NOWHERE, i + 1 < *n ? i + 1 : NOWHERE};
    m->items = 0;
    for (uint32_t i = 0; i < *n; i++) push_pair(m, i);
    while (m->items) {
        const pare_merge_item item = pop_pair(m);
        pare_merge_node *const left = &m->node[item.at];
        if (left->id != item.left || left->next == NOWHERE) continue; /* changed since */
        pare_merge_node *const right = &m->node[left->next];
        if (right->id != item.right) continue;
        left->id = item.into;
        left->next = right->next;
        right->id = -1;
        if (left->next != NOWHERE) m->node[left->next].prev = item.at;
        push_pair(m, left->prev);
        push_pair(m, item.at);
    }
    *n = 0;
    for (uint32_t i = 0; i != NOWHERE; i = m->node[i].next) ids[(*n)++] = m->node[i].id;
    return PARE_OK;
}

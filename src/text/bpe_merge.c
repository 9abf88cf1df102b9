#include "bpe_merge.h"

#define NOWHERE UINT32_MAX

static bool before(const pare_merge_item *a, const pare_merge_item *b)
{
    return a->key > b->key || (a->key == b->key && a->at < b->at);
}

static void heap_push(pare_merger *m, pare_merge_item item)
{
    size_t i = m->items++;
    while (i > 0 && before(&item, &m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = item;
}

static pare_merge_item heap_pop(pare_merger *m)
{
    const pare_merge_item top = m->heap[0], last = m->heap[--m->items];
    size_t i = 0;
    for (size_t child = 1; child < m->items; child = 2 * i + 1) {
        if (child + 1 < m->items && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

static void offer(pare_merger *m, uint32_t at)
{
    if (at == NOWHERE || m->node[at].next == NOWHERE) return;
    pare_merge_item item = {0, at, m->node[at].id, m->node[m->node[at].next].id, -1};
    item.into = m->pair(m->self, item.left, item.right, &item.key);
    if (item.into >= 0) heap_push(m, item);
}

/* An item is stale when one of its two nodes has changed since. */
static bool is_current(const pare_merger *m, const pare_merge_item *item)
{
    const pare_merge_node *left = &m->node[item->at];
    return left->id == item->left && left->next != NOWHERE && m->node[left->next].id == item->right;
}

static void join(pare_merger *m, const pare_merge_item *item)
{
    pare_merge_node *left = &m->node[item->at], *right = &m->node[left->next];
    left->id = item->into;
    left->next = right->next;
    right->id = -1;
    if (left->next != NOWHERE) m->node[left->next].prev = item->at;
    offer(m, left->prev);
    offer(m, item->at);
}

/* n - 1 pairs at first, and at most n - 1 merges that offer two more each. */
static pare_status make_room(pare_merger *m, size_t n, pare_err *err)
{
    if (n <= m->room) return PARE_OK;
    const size_t room = n < 64 ? 64 : n > SIZE_MAX / 8 ? n : n + n / 2;
    m->node = pare_alloc(m->arena, room, sizeof(pare_merge_node));
    m->heap = pare_alloc(m->arena, room, 3 * sizeof(pare_merge_item));
    m->room = m->node && m->heap ? room : 0;
    return m->room ? PARE_OK : pare_no_memory(err);
}

pare_status pare_merge(pare_merger *m, int32_t *ids, size_t *n, pare_err *err)
{
    if (*n < 2) return PARE_OK;
    if (*n >= NOWHERE)
        return pare_fail(err, PARE_ERR_INPUT, "text of %zu symbols is too long to encode", *n);
    const pare_status st = make_room(m, *n, err);
    if (st) return st;
    for (uint32_t i = 0; i < *n; i++)
        m->node[i] = (pare_merge_node){ids[i], i ? i - 1 : NOWHERE, i + 1 < *n ? i + 1 : NOWHERE};
    m->items = 0;
    for (uint32_t i = 0; i < *n; i++) offer(m, i);
    while (m->items) {
        const pare_merge_item item = heap_pop(m);
        if (is_current(m, &item)) join(m, &item);
    }
    *n = 0;
    for (uint32_t i = 0; i != NOWHERE; i = m->node[i].next) ids[(*n)++] = m->node[i].id;
    return PARE_OK;
}

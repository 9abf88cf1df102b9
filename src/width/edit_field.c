/* edit_field.c - whom an edit reaches. Attention carries a change from a key to the queries that
 * see it, one step per layer; a node that has changed stays changed (skip, query). */
#include "edits.h"

bool edit_field_of(edit_field *f, const edit_map *m, uint32_t center, size_t most)
{
    const pare_graph *const g = m->by_key;
    size_t n = 1, done = 0;
    f->node[0] = center;
    m->place[center] = 0;
    f->upto[0] = 1;
    for (size_t l = 0; l < f->hops && n <= most; l++) {
        for (const size_t end = n; done < end; done++) {
            const uint32_t j = f->node[done];
            for (size_t e = g->ptr[j]; e < g->ptr[j + 1]; e++) {
                const uint32_t i = g->idx[e];
                if (m->place[i] != EDIT_NOWHERE) continue;
                m->place[i] = (uint32_t)n;
                f->node[n++] = i;
            }
        }
        f->upto[l + 1] = n;
    }
    for (size_t i = 0; i < n; i++) m->place[f->node[i]] = EDIT_NOWHERE;
    return n <= most;
}

/* Where node j is found when layer l begins. */
static uint32_t found(const edit_map *m, uint32_t j, size_t changed, size_t first, size_t split)
{
    const uint32_t at = m->place[j];
    return at < changed ? (uint32_t)(split + first + at) : j; /* nowhere is above all places */
}

void edit_field_view(const edit_field *f, const edit_map *m, size_t l, size_t first, size_t split,
                     patch_view *v, uint32_t *self, size_t *ptr, uint32_t *idx)
{
    const size_t changed = f->upto[l], rows = f->upto[l + 1];
    for (size_t i = 0; i < changed; i++) m->place[f->node[i]] = (uint32_t)i;
    for (size_t i = 0; i < rows; i++) {
        const uint32_t node = f->node[i];
        size_t at = ptr[v->rows];
        self[v->rows] = found(m, node, changed, first, split);
        for (size_t e = m->graph->ptr[node]; e < m->graph->ptr[node + 1]; e++)
            idx[at++] = found(m, m->graph->idx[e], changed, first, split);
        ptr[++v->rows] = at;
    }
    for (size_t i = 0; i < changed; i++) m->place[f->node[i]] = EDIT_NOWHERE;
}

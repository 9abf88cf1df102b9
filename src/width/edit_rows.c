/* edit_rows.c - the rows that a node may be given: those of the data, each once, the most frequent
 * first. */
#include "linalg/matrix.h"
#include "edits.h"
#include <stdlib.h>
#include <string.h>

typedef struct kind {
    size_t first, count;
} kind;

typedef struct sorter {
    const double *row;
    size_t width, at;
} sorter;

static int by_content(const void *a, const void *b)
{
    const sorter *const x = a, *const y = b;
    const int c = memcmp(x->row, y->row, x->width * sizeof *x->row);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static int by_count(const void *a, const void *b)
{
    const kind *const x = a, *const y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Nodes with equal rows stand together, lowest number first; their kinds in *out. */
static size_t kinds_of(kind *out, sorter *s, const pare_mat *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->rows; i++) s[i] = (sorter){pare_row(x, i), x->cols, i};
    qsort(s, x->rows, sizeof *s, by_content);
    for (size_t i = 0; i < x->rows; i++) {
        const bool same = i > 0 && memcmp(s[i].row, s[i - 1].row, x->cols * sizeof *s[i].row) == 0;
        if (!same) out[n++] = (kind){s[i].at, 0};
        out[n - 1].count++;
    }
    qsort(out, n, sizeof *out, by_count);
    return n;
}

edit_rows edit_rows_of(pare_work *w, const pare_mat *x, size_t most)
{
    edit_rows r = {0};
    const pare_mark mark = pare_arena_mark(w->arena);
    r.row = pare_work_alloc(w, x->rows, sizeof *r.row);
    r.of = pare_work_alloc(w, x->rows, sizeof *r.of);
    kind *const kinds = pare_work_alloc(w, x->rows, sizeof *kinds);
    sorter *const s = pare_work_alloc(w, x->rows, sizeof *s);
    if (w->st) {
        pare_arena_reset(w->arena, mark);
        return (edit_rows){0};
    }
    r.different = kinds_of(kinds, s, x);
    r.n = most == 0 || most > r.different ? r.different : most;
    for (size_t k = 0; k < r.n; k++) r.row[k] = kinds[k].first;
    for (size_t i = 0; i < x->rows; i++) {
        r.of[i] = SIZE_MAX;
        for (size_t k = 0; r.of[i] == SIZE_MAX && k < r.n; k++)
            if (memcmp(pare_row(x, r.row[k]), pare_row(x, i), x->cols * sizeof *x->v) == 0)
                r.of[i] = k;
    }
    return r;
}

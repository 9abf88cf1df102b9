/* edits.h - all single-node edits of a graph: which they are, and whom they reach. */
#ifndef PARE_SRC_WIDTH_EDITS_H
#define PARE_SRC_WIDTH_EDITS_H
#include "patch.h"

/* ---- the rows that a node may be given (edit_rows.c) ---- */

typedef struct edit_rows {
    size_t different; /* rows of the data that differ from one another */
    size_t n;         /* the most frequent of them; among equals the one that comes first */
    size_t *row;      /* n: where each stands in the data */
    size_t *of;       /* for each node: which of them it has, SIZE_MAX: none */
} edit_rows;
/* most 0: all of them. */
edit_rows edit_rows_of(pare_work *w, const pare_mat *x, size_t most);

/* ---- whom an edit reaches (edit_field.c) ---- */

/* The nodes within `hops` steps of a node, nearest first: after layer l only the first upto[l] of
 * them can have changed. */
typedef struct edit_field {
    size_t hops, *upto; /* hops + 1 */
    uint32_t *node;
} edit_field;

/* What finding fields needs: who sees whom, both ways, and a place for every node. */
typedef struct edit_map {
    const pare_graph *graph, *by_key;
    uint32_t *place; /* n; EDIT_NOWHERE between calls */
} edit_map;
#define EDIT_NOWHERE UINT32_MAX

/* `f` has room for all nodes. Stops beyond `most` nodes and says so. */
bool edit_field_of(edit_field *f, const edit_map *m, uint32_t center, size_t most);
/* The rows of layer l + 1 as patch_step reads them: appended to the view's lists, for an edit whose
 * rows of layer l begin at `first`. */
void edit_field_view(const edit_field *f, const edit_map *m, size_t l, size_t first, size_t split,
                     patch_view *v, uint32_t *self, size_t *ptr, uint32_t *idx);
#endif

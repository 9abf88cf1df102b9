/* Attention and feed-forward part of each block as blocks of their own (sublayers.h). */
#include "sublayers.h"

pare_model sublayers_of(pare_work *w, const pare_model *m)
{
    pare_model s = *m;
    s.nblocks = 2 * m->nblocks;
    s.blocks = pare_work_alloc(w, s.nblocks, sizeof *s.blocks);
    for (size_t b = 0; !w->st && b < m->nblocks; b++) {
        s.blocks[2 * b].attn = m->blocks[b].attn;
        s.blocks[2 * b + 1].ffn = m->blocks[b].ffn;
    }
    return s;
}

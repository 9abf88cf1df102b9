/* share_rows_prover.c - proves again, from the two files alone, what sharing rows of the embedding costs.
 *
 * Everything but rows of the embedding must be the same to the bit, and every row that changed must be
 * the one that tokens share. Then share_rows_bound.c has the theorems; the headline comes from the
 * enclosure of both models on the given inputs. */
#include "fold_parts.h"
#include "share_rows.h"
#include "cert/conformal.h"
#include "cert/outputs.h"
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include <math.h>
#include <string.h>

/* What differs beside rows of the embedding that became the shared one. */
static pare_status count_others(size_t *others, size_t *moved, const pare_model *f,
                                const pare_model *g, pare_err *err)
{
    const pare_embedding *const s = &f->embedding, *const t = &g->embedding;
    const size_t size = s->width * pare_dtype_size(s->table.dtype);
    const bool comparable = s->ids && t->ids && s->vocab == t->vocab && s->width == t->width &&
                            s->table.dtype == t->table.dtype && f->nblocks == g->nblocks;
    pare_arena *const scratch = pare_arena_new();
    pare_model a = *f, b = *g;
    a.embedding.table = b.embedding.table = (pare_weight){0};
    a.embedding.rows = b.embedding.rows = NULL;
    *moved = 0;
    pare_status st =
        scratch ? fold_count_different(others, scratch, &a, &b, err) : pare_no_memory(err);
    pare_arena_free(scratch);
    if (st) return st;
    *others += outer_settings_differ(&a, &b) + !comparable;
    for (size_t i = 0; i < f->nblocks && i < g->nblocks; i++)
        *others += block_settings_differ(&f->blocks[i], &g->blocks[i]);
    for (size_t id = 0; comparable && id < s->vocab; id++) {
        const uint8_t *const x = s->table.data, *const y = t->table.data;
        if (memcmp(x + pare_token_row(s, (int64_t)id) * size,
                   y + pare_token_row(t, (int64_t)id) * size, size) == 0)
            continue;
        *moved += 1;
        *others += !pare_token_shares(t, id);
    }
    return PARE_OK;
}

static void add_theorems(cert_builder *b, const pare_model *f, const pare_model *g, bool moved)
{
    pare_work *const w = &b->work;
    share_bound s;
    const size_t n = pare_shared_tokens(&g->embedding);
    const double tokens = (double)n;
    const char *const without =
        pare_sprintf(w->arena, "all inputs without the %zu shared tokens", n);
    share_rows_bound(&s, w, f, g);
    if (w->st) return;
    if (!moved) s.all = pare_ub_exact(0);
    add_bound(b, (pare_claim){.kind = PARE_APRIORI_OUTPUTS}, "all inputs", s.all);
    if (f->head.tied)
        add_bound(b, (pare_claim){.kind = PARE_SHARED_ROWS_OTHERS, .p = {tokens}}, without,
                  pare_ub_exact(0));
    add_bound(b, (pare_claim){.kind = PARE_SHARED_ROWS_OUTPUTS, .p = {tokens}}, without, s.without);
    add_bound(b, (pare_claim){.kind = PARE_SHARED_ROWS_KL, .p = {tokens}}, without, s.kl);
    add_statement(b, (pare_claim){.kind = PARE_SHARED_ROWS_BOUNDED,
                                  .text = s.state,
                                  .holds = s.bounded ? PARE_TRUE : PARE_FALSE});
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    cert_builder b = {.work = {a, exec, err, PARE_OK}, .cert = again};
    size_t others = 0, moved = 0;
    pare_output_bound o;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    b.work.st = count_others(&others, &moved, f, g, err);
    if (!b.work.st) b.work.st = pare_outputs_compare(&o, a, f, g, set, true, exec, err);
    if (!b.work.st) b.work.st = pare_cert_take_outputs(again, a, &o, err);
    add_statement(&b, (pare_claim){.kind = PARE_SHARED_ROWS_SAME,
                                   .holds = others == 0 ? PARE_TRUE : PARE_FALSE,
                                   .value = (double)others});
    if (!b.work.st && others == 0) add_theorems(&b, f, g, moved > 0);
    if (b.work.st) return b.work.st;
    return pare_add_new_inputs(again, a, &claimed->data, set, o.each, err);
}

const pare_prover pare_share_rows_prover = {"fold.share_rows", prove};

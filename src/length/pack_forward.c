/* pack_forward.c - short inputs through a whole model, several in each call of an oracle
 * (pack_inputs.c): they go side by side from layer to layer, as many as one call holds, and each
 * head of a layer is one call. */
#include "length_cert.h"
#include "attend_plan.h"
#include "backend.h"
#include "model/inputs.h"
#include <stdlib.h>

typedef struct packed_pass {
    const pare_oracle *orc;
    double penalty;
    pare_pack_stats *stats;
    certifier *cert; /* or NULL */
    const pare_model *m;
} packed_pass;

/* Jobs come input after input, head after head: those of one head are packed together. */
static pare_status one_layer(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                             size_t count, const pare_pattern *p, const pare_graph *g,
                             pare_err *err)
{
    packed_pass *const w = self;
    const size_t heads = w->m->blocks[block].attn.nheads, inputs = count / heads;
    pare_length_job *const own = calloc(inputs + 1, sizeof *own);
    pare_status st = own ? PARE_OK : pare_no_memory(err);
    (void)g, (void)t;
    for (size_t h = 0; h < heads && !st; h++) {
        for (size_t i = 0; i < inputs; i++) own[i] = pare_length_job_of(&jobs[i * heads + h]);
        st = pare_length_pack(w->orc, own, inputs, p, w->penalty, w->stats, err);
        for (size_t i = 0; w->cert && i < inputs && !st; i++)
            st = certifier_judge(w->cert, &own[i], err);
    }
    free(own);
    return st;
}

pare_status pare_length_pack_forward(void *const *out, pare_pack_stats *stats,
                                     pare_length_cert *cert, const pare_length_pass *pass,
                                     const pare_pack_opts *opts, const pare_exec *exec,
                                     pare_err *err)
{
    static const pare_pack_opts usual = PARE_PACK_OPTS_DEFAULT;
    const pare_pack_opts *const o = opts ? opts : &usual;
    const pare_oracle *const orc = pass->oracle;
    const pare_model *const m = pass->model;
    const pare_input *const in = pass->in;
    const size_t count = pass->n;
    pare_oracle_caps caps;
    orc->ops->caps(orc->self, &caps);
    size_t longest = 0;
    for (size_t i = 0; i < count; i++)
        if (in[i].tokens > longest) longest = in[i].tokens;
    /* The numbers of attention are those of one plain call, but for the rows of the others. */
    pare_length_plan plan = {.pattern = m->pattern, .caps = caps};
    if (plan.pattern.kind == PARE_WINDOW && plan.pattern.window >= longest)
        plan.pattern.kind = PARE_CAUSAL;
    plan.caps.features = PARE_ORC_QKV | PARE_ORC_FULL | PARE_ORC_CAUSAL;
    plan.opts.mode = PARE_LENGTH_ZEROREF;
    certifier certify = {.plan = &plan, .rows = o->rows, .call_rows = caps.max_len, .out = cert};
    packed_pass w = {
        .orc = orc, .penalty = o->penalty, .stats = stats, .cert = cert ? &certify : NULL, .m = m};
    const pare_attender by = {.fn = one_layer, .self = &w};
    *stats = (pare_pack_stats){0};
    if (cert) *cert = (pare_length_cert){.sound = true};
    pare_status st = PARE_OK;
    for (size_t first = 0; first < count && !st;) {
        size_t end = first, n = 0;
        while (end < count &&
               (end == first || n + in[end].batch * in[end].tokens <= caps.max_len)) {
            n += in[end].batch * in[end].tokens;
            end++;
        }
        st = pare_forward_together(out + first, caps.dtype, m, in + first, end - first, &by, exec,
                                   err);
        if (!st) st = pare_progress(exec, "packed", end, count, err);
        first = end;
    }
    if (cert) {
        cert->calls = stats->calls;
        certifier_end(&certify);
    }
    return st;
}

/* reduce_chain.c - one certificate of a chain of cuts (pare/cut.h). */
#include "reduce_parts.h"
#include "cert/prove.h"
#include "model/inputs.h"
#include <pare/cut.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

/* Both ends of the chain as files, and the common inputs. */
static pare_status open_ends(reducer *r, pare_model **f)
{
    pare_reduction *const out = r->out;
    const pare_cert *const cert = &out->cert;
    const pare_data_ref *const d = &cert->data;
    pare_cert_inputs *const in = &out->inputs.held;
    out->from = pare_path_beside(r->arena, out->cert_path, cert->input.path);
    out->to = pare_path_beside(r->arena, out->cert_path, cert->output.path);
    const pare_data_opts read = {
        .split = d->split, .column = d->column, .seed = cert->seed, .exec = r->exec};
    size_t texts;
    const char *const data = !d->path || pare_data_is_self(d->path, &texts)
                                 ? d->path
                                 : pare_path_beside(r->arena, out->cert_path, d->path);
    if (!out->from || !out->to || (d->path && !data)) return pare_no_memory(r->err);
    pare_status st = reduce_event(r, PARE_REDUCE_MADE);
    pare_files *const files = pare_files_new_unhashed();
    if (!st && !files) st = pare_no_memory(r->err);
    if (!st)
        st = pare_err_path(r->err,
                           pare_model_load_as(f, out->from, &cert->input.read_as, files, r->err),
                           out->from);
    pare_files_free(files);
    if (st) return st;
    if (!data)
        return pare_inputs_random(&in->set, r->arena, *f, d->count, d->tokens, cert->seed, r->err);
    st = reduce_loaded(r, pare_cert_inputs_load(in, r->arena, *f, data, &read, r->err));
    if (st || strcmp(d->kind, "part") != 0) return st;
    if (d->numbers)
        return pare_inputs_pick(&in->set, r->arena, &in->data.inputs, d->numbers, d->count,
                                d->tokens, r->err);
    return pare_inputs_part(&in->set, r->arena, &in->data.inputs, d->first, d->count, d->tokens,
                            r->err);
}

pare_status pare_reduce_chain(pare_reduction *out, pare_arena *a, char *const *links, size_t n,
                              const pare_reduce_opts *opts, const pare_exec *exec, pare_err *err)
{
    const char *const cert_path = opts->to;
    pare_cert **const certs = pare_alloc(a, n, sizeof(pare_cert *));
    pare_model *f = NULL, *g = NULL;
    pare_gap gap = {0};
    pare_reduce_opts o = *opts;
    if (o.started <= 0) o.started = pare_seconds();
    *out = (pare_reduction){.cert_path = cert_path, .output_error = NAN};
    reducer r = {.o = &o,
                 .out = out,
                 .arena = a,
                 .steps = pare_steps_of(exec, 100),
                 .exec = exec,
                 .err = err};
    pare_status st = certs ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; i < n && !st; i++)
        st = pare_err_path(err, pare_cert_read(&certs[i], a, links[i], err), links[i]);
    if (!st)
        st = pare_cert_compose(&out->cert, a, cert_path, certs, (const char *const *)links, n, err);
    if (!st) st = open_ends(&r, &f);
    r.m = f;
    /* `measured` of the whole chain: from its first model to its last. Read off the enclosures, as
     * the verifier does: in f64 alone it may be off by more than their radius. */
    reduce_phase(&r, "measure", 20);
    if (!st) st = pare_err_path(err, pare_model_load(&g, out->to, err), out->to);
    if (!st) st = pare_prove_gap(&gap, f, g, &out->inputs.held.set, r.exec, err);
    out->cert.measured = gap.measured;
    pare_model_free(g);
    reduce_phase(&r, NULL, 70);
    /* Proven again from the files before it appears: a chain that does not hold is not left lying
     * around, and what it would replace is not lost to it. */
    const char *const fresh = pare_sprintf(a, "%s" PARE_PART_SUFFIX, cert_path, (long)getpid());
    if (!st && !fresh) st = pare_no_memory(err);
    if (!st) {
        st = pare_cert_write(&out->cert, fresh, true, err);
        if (!st) st = pare_verify_file(fresh, &(pare_verify_file_opts){.exec = r.exec}, err);
        if (!st) st = pare_file_move(fresh, cert_path, o.overwrite, err);
        if (st) unlink(fresh);
    }
    out->ms_reduction = 1e3 * (pare_seconds() - o.started);
    out->published = !st;
    if (!st) st = reduce_event(&r, PARE_REDUCE_PUBLISHED);
    if (!st) st = reduce_measure(&r);
    pare_model_free(f);
    return st;
}

/* One certificate for a chain of cuts (cut_chain.h). */
#include "cut_chain.h"

#include <string.h>
#include <unistd.h>

pare_status chain_paths(cli *c, reduction *r, const char *cert_path)
{
    static const char tail[] = ".cert.json";
    const size_t n = strlen(cert_path), t = sizeof tail - 1;
    const bool usual = n > t && strcmp(cert_path + n - t, tail) == 0;
    r->cert_path = cert_path;
    r->run_path = pare_sprintf(c->arena, "%.*s.run.json", (int)(usual ? n - t : n), cert_path);
    return r->run_path ? PARE_OK : pare_no_memory(&c->err);
}

/* Both ends of the chain as files, and the common inputs. */
static pare_status find_ends(cli *c, reduction *r, pare_model **f, cert_inputs *in)
{
    const pare_cert *const cert = &r->cert;
    const pare_data_ref *const d = &cert->data;
    r->from = pare_path_beside(c->arena, r->cert_path, cert->input.path);
    r->to = pare_path_beside(c->arena, r->cert_path, cert->output.path);
    r->data = d->path ? pare_path_beside(c->arena, r->cert_path, d->path) : NULL;
    if (!r->from || !r->to || (d->path && !r->data)) return pare_no_memory(&c->err);
    pare_status st = cli_may_write(c, r->cert_path, r->from);
    if (!st) st = cli_may_write(c, r->cert_path, r->to);
    if (!st) st = cli_load(c, f, r->from);
    if (!st && !r->data)
        return pare_inputs_random(&in->set, c->arena, *f, d->count, d->tokens, cert->seed, &c->err);
    if (!st) st = cli_inputs(c, in, *f, r->data, d->split);
    if (st || strcmp(d->kind, "part") != 0) return st;
    return pare_inputs_part(&in->set, c->arena, &in->data.inputs, d->first, d->count, d->tokens,
                            &c->err);
}

/* `measured` of the whole chain: from its first model to its last, on the common inputs. Read off
 * the enclosures, as the verifier does: in f64 alone it may be off by more than their radius. */
static pare_status measure_ends(cli *c, reduction *r, const pare_model *f, const pare_inputs *set)
{
    pare_model *g = NULL;
    pare_gap gap = {0};
    pare_status st = cli_load(c, &g, r->to);
    if (!st) st = pare_prove_gap(&gap, f, g, set, &c->exec, &c->err);
    r->cert.measured = gap.measured;
    pare_model_free(g);
    return st;
}

/* Proven again from the files before it appears: a chain that does not hold is not left lying
 * around, and what -f would replace is not lost to it. */
static pare_status write_verified(cli *c, const pare_cert *cert, const char *path)
{
    pare_verify_opts opts = {0};
    const char *fresh = cli_fresh(c, path);
    if (!fresh) return PARE_ERR_MEMORY;
    pare_status st = pare_cert_write(cert, fresh, true, &c->err);
    if (!st) st = pare_cert_verify(fresh, cli_verify_opts(c, &opts), &c->err);
    if (!st) st = pare_file_move(fresh, path, c->force, &c->err);
    if (st) unlink(fresh);
    return st;
}

pare_status chain_write(cli *c, reduction *r, char *const *links, size_t n)
{
    pare_cert **read = pare_alloc(c->arena, n, sizeof *read);
    pare_model *f = NULL;
    cert_inputs in = {0};
    if (!read) return pare_no_memory(&c->err);
    r->started = pare_seconds();
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++)
        st = cli_name(c, pare_cert_read(&read[i], c->arena, links[i], &c->err), links[i]);
    if (!st)
        st = pare_cert_compose(&r->cert, c->arena, r->cert_path, read, (const char *const *)links,
                               n, &c->err);
    if (!st) st = find_ends(c, r, &f, &in);
    cli_phase(c, "measure", 20);
    if (!st) st = measure_ends(c, r, f, &in.set);
    cli_phase(c, NULL, 70);
    if (!st) st = write_verified(c, &r->cert, r->cert_path);
    r->ms_reduction = 1e3 * (pare_seconds() - r->started);
    if (!st)
        c->stopped = "stopped before speed and quality were measured; the certificate is written";
    if (!st) st = reduce_compare(c, r, f, &in);
    pare_model_free(f);
    return st;
}

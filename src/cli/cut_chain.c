/* One certificate for a chain of cuts (cut_chain.h). */
#include "cut_chain.h"

#include <unistd.h>

/* `measured` of the whole chain: from its first model to its last, on the common inputs. */
static pare_status measure_ends(cli *c, pare_cert *cert, const char *path)
{
    pare_model *f = NULL, *g = NULL;
    pare_inputs set = {0};
    const char *from = pare_path_beside(c->arena, path, cert->input.path);
    const char *to = pare_path_beside(c->arena, path, cert->output.path);
    const char *data = cert->data.path ? pare_path_beside(c->arena, path, cert->data.path) : NULL;
    if (!from || !to || (cert->data.path && !data)) return pare_no_memory(&c->err);
    pare_status st = cli_may_write(c, path, from);
    if (!st) st = cli_may_write(c, path, to);
    if (!st) st = cli_load(c, &f, from);
    if (!st) st = cli_load(c, &g, to);
    if (!st && data)
        st = cli_reload_part(&set, c->arena, f, data, &cert->data, &c->err);
    else if (!st)
        st = pare_inputs_random(&set, c->arena, f, cert->data.count, cert->data.tokens, cert->seed,
                                &c->err);
    if (!st) st = pare_measure(&cert->measured, f, g, &set, &c->exec, &c->err);
    pare_model_free(f);
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
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st) st = pare_file_move(fresh, path, c->force, &c->err);
    if (st) unlink(fresh);
    return st;
}

pare_status chain_write(cli *c, pare_cert *whole, const char *path, char *const *links, size_t n)
{
    pare_cert **read = pare_alloc(c->arena, n, sizeof *read);
    if (!read) return pare_no_memory(&c->err);
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++)
        st = cli_name(c, pare_cert_read(&read[i], c->arena, links[i], &c->err), links[i]);
    if (!st)
        st = pare_cert_compose(whole, c->arena, path, read, (const char *const *)links, n, &c->err);
    if (!st) st = measure_ends(c, whole, path);
    return st ? st : write_verified(c, whole, path);
}

/* pare compose: one certificate for a chain of cuts. */
#include "interrupt.h"
#include "out.h"

#include <string.h>
#include <unistd.h>

/* `measured` of the whole chain: from its first model to its last, on the common inputs. */
static pare_status measure_ends(cli *c, pare_cert *cert)
{
    pare_model *f = NULL, *g = NULL;
    pare_inputs set = {0};
    const char *from = pare_path_beside(c->arena, c->out, cert->input.path);
    const char *to = pare_path_beside(c->arena, c->out, cert->output.path);
    const char *data = cert->data.path ? pare_path_beside(c->arena, c->out, cert->data.path) : NULL;
    if (!from || !to || (cert->data.path && !data)) return pare_no_memory(&c->err);
    pare_status st = cli_may_write(c, c->out, from);
    if (!st) st = cli_may_write(c, c->out, to);
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

static pare_status print(cli *c, const pare_cert *cert)
{
    if (c->json) {
        cJSON *root = out_json_begin(c);
        return out_json(c, root,
                        root && pare_json_add_size(root, "links", cert->nchain) &&
                            out_json_cert(root, c->out, cert));
    }
    out_row("chain", "%zu cuts", cert->nchain);
    for (size_t i = 0; i < cert->nchain; i++)
        out_row("", "%s: %s -> %s", cert->chain[i]->reduction, cert->chain[i]->input.path,
                cert->chain[i]->output.path);
    out_tiers(cert, c->verbose);
    out_row("certificate", "%s", c->out);
    return PARE_OK;
}

/* Proven again from the files before it appears: a chain that does not hold is not left lying
 * around, and what -f would replace is not lost to it. */
static pare_status write_verified(cli *c, const pare_cert *cert)
{
    pare_verify_opts opts = {0};
    const char *fresh = cli_fresh(c, c->out);
    if (!fresh) return PARE_ERR_MEMORY;
    pare_status st = pare_cert_write(cert, fresh, true, &c->err);
    if (!st) st = pare_cert_verify(fresh, cli_verify_opts(c, &opts), &c->err);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st) st = pare_file_move(fresh, c->out, c->force, &c->err);
    if (st) unlink(fresh);
    return st;
}

static pare_status compose(cli *c)
{
    const size_t n = c->noperands;
    pare_cert **links = pare_alloc(c->arena, n, sizeof *links), whole;
    if (!links) return pare_no_memory(&c->err);
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) st = cli_may_write(c, c->out, c->operand[i]);
    for (size_t i = 0; i < n && !st; i++)
        st =
            cli_name(c, pare_cert_read(&links[i], c->arena, c->operand[i], &c->err), c->operand[i]);
    if (!st)
        st = pare_cert_compose(&whole, c->arena, c->out, links, (const char *const *)c->operand, n,
                               &c->err);
    if (!st) st = measure_ends(c, &whole);
    if (!st) st = write_verified(c, &whole);
    if (st) return st;
    return print(c, &whole);
}

int cmd_compose(int argc, char **argv)
{
    static const char *const operands[] = {"CERT", "CERT", NULL};
    const opt_spec spec = {
        .command = "compose",
        .args = "CERT CERT... -o OUT.cert.json",
        .about =
            "One certificate for a chain of cuts, first cut first: each one's output must be the\n"
            "next one's input, on the same inputs and in the same norm. Bounds add up,\n"
            "`measured` is taken anew, and the whole is verified before it is called done.",
        .example = "compose a.safetensors.cert.json b.safetensors.cert.json -o ab.cert.json",
        .operands = operands,
        .more = true,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the certificate of the chain", argc, argv, &rc))
        return rc;
    return cli_finish(&c, compose(&c));
}

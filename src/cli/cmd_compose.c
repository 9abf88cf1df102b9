/* pare compose: one certificate for a chain of cuts. */
#include "cut_chain.h"
#include "show_cut.h"

#include <string.h>

static pare_status print(cli *c, const reduction *r)
{
    const pare_cert *const cert = &r->cert;
    if (c->json) {
        cJSON *root = out_json_begin(c);
        return out_json(c, root,
                        root && pare_json_add_size(root, "links", cert->nchain) &&
                            reduce_json_front(root, r) && reduce_json_end(root, r));
    }
    char words[40];
    show_results(c, r);
    snprintf(words, sizeof words, "a chain of %zu cuts, one after another", cert->nchain);
    show_shapes(r, words);
    for (size_t i = 0; i < cert->nchain; i++) {
        char bound[40];
        out_row(i ? "" : "chain", "%s: %s -> %s, proven %s", cert->chain[i]->reduction,
                cert->chain[i]->input.path, cert->chain[i]->output.path,
                pare_ub_format(bound, pare_ub_exact(cert->chain[i]->proven), 4));
    }
    show_end(c, r);
    return PARE_OK;
}

static pare_status compose(cli *c)
{
    reduction r = {0};
    pare_status st = chain_paths(c, &r, c->out);
    if (!st) st = cli_may_write(c, r.run_path, NULL);
    for (size_t i = 0; i < c->noperands && !st; i++) st = cli_may_write(c, c->out, c->operand[i]);
    if (!st) st = chain_write(c, &r, c->operand, c->noperands);
    if (st == PARE_ERR_INPUT && strstr(c->err.msg, "different inputs")) {
        const pare_err why = c->err;
        return pare_fail(&c->err, st,
                         "%s; --data, --heldout and --prove of each cut are in its .run.json",
                         why.msg);
    }
    return st ? st : print(c, &r);
}

int cmd_compose(int argc, char **argv)
{
    static const char *const operands[] = {"CERT", "CERT", NULL};
    const opt_spec spec = {
        .command = "compose",
        .args = "CERT CERT... -o OUT.cert.json",
        .about = "Makes one certificate of the certificates of several cuts, first cut first. The\n"
                 "output of each cut must be the input of the next, and all must be proven on the\n"
                 "same inputs. The bounds add up; the result is verified before it is written.",
        .examples = {"compose a.safetensors.cert.json b.safetensors.cert.json -o ab.cert.json",
                     "compose fold.cert.json width.cert.json depth.cert.json -o all.cert.json"},
        .operands = operands,
        .more = true,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "where the certificate of the chain goes", argc, argv,
                   &rc))
        return rc;
    return cli_finish(&c, compose(&c));
}

/* cmd_compose.c - pare compose: one certificate for a chain of cuts. */
#include "base/json.h"
#include "reduce_command.h"
#include "show_cut.h"

#include <string.h>

static pare_status compose(cli *c)
{
    reduction run = {
        .c = c, .o = {.to = c->out, .overwrite = c->force, .event = reduce_on_event, .self = &run}};
    pare_reduction *const r = &run.r;
    pare_status st = reduce_paths(&run, c->out);
    if (!st) st = cli_may_write(c, run.run_path, NULL);
    for (size_t i = 0; i < c->noperands && !st; i++) st = cli_may_write(c, c->out, c->operand[i]);
    if (!st)
        st = pare_reduce_chain(r, c->arena, c->operand, c->noperands, &run.o, &c->whole, &c->err);
    if (st == PARE_ERR_INPUT && strstr(c->err.msg, "different inputs"))
        return pare_fail(&c->err, st,
                         "%s; --data, --heldout and --prove of each cut are in its .run.json",
                         c->err.msg);
    if (!st && r->no_metric) cli_note(c, "quality is not measured: %s", r->no_metric);
    if (!st) st = reduce_write_run_file(&run);
    if (st) return st;
    const size_t n = r->cert.nchain;
    if (c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        root && pare_json_add_size(root, "links", n) &&
                            reduce_json_front(root, r) && reduce_json_end(root, r));
    }
    char words[40];
    show_results(c, r);
    snprintf(words, sizeof words, "a chain of %zu cuts, one after another", n);
    show_shapes(r, words);
    for (size_t i = 0; i < n; i++) {
        const pare_cert *const cut = r->cert.chain[i];
        char bound[40];
        out_row(i ? "" : "chain", "%s: %s -> %s, proven %s", cut->reduction, cut->input.path,
                cut->output.path, pare_ub_format(bound, pare_ub_exact(cut->proven), 4));
    }
    show_end(c, r);
    return PARE_OK;
}

int cmd_compose(int argc, char **argv)
{
    const opt_spec spec = {
        .command = "compose",
        .args = "CERT CERT... -o OUT.cert.json",
        .about = "Makes one certificate of the certificates of several cuts, first cut first. The\n"
                 "output of each cut must be the input of the next, and all must be proven on the\n"
                 "same inputs. The bounds add up; the result is verified before it is written.",
        .examples = {"compose a.safetensors.cert.json b.safetensors.cert.json -o ab.cert.json",
                     "compose fold.cert.json width.cert.json depth.cert.json -o all.cert.json"},
        .operands = (const char *const[]){"CERT", "CERT", NULL},
        .more = true,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "where the certificate of the chain goes", argc, argv,
                   &rc))
        return rc;
    return cli_finish(&c, compose(&c));
}

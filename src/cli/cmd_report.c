/* cmd_report.c - pare report: one page to read and to show. */
#include "interrupt.h"
#include "out.h"

#include <pare/plan.h>

#include <string.h>

typedef struct report_opts {
    const char *title;
    bool verify;
} report_opts;

/* Each certificate has its share of the bar. */
static void begin_proof(void *self, const char *path)
{
    cli *const c = self;
    (void)path;
    cli_phase(c, NULL, 100.0 / (double)c->noperands);
}

/* Of a folder that a cut has written: the certificate in it. */
static const char *certificate_in(cli *c, const char *path)
{
    size_t n = strlen(path);
    if (!pare_is_dir(path)) return path;
    while (n > 1 && path[n - 1] == '/') n--;
    return pare_sprintf(c->arena, "%.*s/pare.cert.json", (int)n, path);
}

static pare_status report(cli *c, void *self)
{
    const report_opts *const o = self;
    const pare_report_opts r = {
        .title = o->title,
        .overwrite = c->force,
        .verify = o->verify,
        .exec = &c->exec,
        .before = begin_proof,
        .self = c,
    };
    const char **const file = pare_alloc(c->arena, c->noperands, sizeof *file);
    pare_status st = file ? PARE_OK : pare_no_memory(&c->err);
    for (size_t i = 0; i < c->noperands && !st; i++) {
        file[i] = certificate_in(c, c->operand[i]);
        st = file[i] ? cli_is_there(c, file[i]) : pare_no_memory(&c->err);
    }
    for (size_t i = 0; i < c->noperands && !st; i++) st = cli_may_write(c, c->out, file[i]);
    if (!st) st = pare_report_write(c->out, file, c->noperands, &r, &c->err);
    cli_bar_end(c);
    if (st) return st;
    if (c->json) {
        cJSON *root = out_json_begin(c);
        return out_json(c, root,
                        pare_json_add_values(root, "report:s files:z", c->out, c->noperands));
    }
    out_row("report", "%s: %zu %s", c->out, c->noperands, c->noperands == 1 ? "file" : "files");
    return PARE_OK;
}

int cmd_report(int argc, char **argv)
{
    report_opts o = {0};
    /* clang-format off */
    const opt own[] = {
        {.name = "title", .kind = OPT_TEXT, .to = &o.title, .metavar = "TEXT", .group = "The page",
         .unset = "pare report", .help = "heading of the page"},
        {.name = "verify", .kind = OPT_FLAG, .to = &o.verify,
         .help = "prove every certificate again first, and show on the page whether it holds"},
    };
    const opt_spec spec = {
        .command = "report",
        .args = "FILE... -o report.html",
        .about = "Writes one page to read and to show. FILE is a certificate (its run file is\n"
                 "found beside it) or the folder that it is in, a plan of pare length, what\n"
                 "`pare probe --json` or `pare repro --json` printed, or a log of pare train. The\n"
                 "page needs no network and no scripts.",
        .examples = {"report small.safetensors.cert.json -o report.html",
                     "report *.cert.json probe.json --verify -o report.html"},
        OPT_ROWS(own),
        .operands = (const char *const[]){"FILE", NULL},
        .more = true,
    };
    /* clang-format on */
    return cli_command(&spec, CLI_MUST_OUT, "where the page goes", argc, argv, report, &o);
}

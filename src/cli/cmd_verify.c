/* pare verify: a certificate proven again from its files; the exit code is the answer. */
#include "out.h"
#include "prove_length.h"

#include <math.h>

typedef struct verify_opts {
    const char *input, *output, *data, *backend;
    bool evidence;
} verify_opts;

static const char *shown(const char *override, const char *path)
{
    return override ? override : path;
}

/* What was proven again beside what is claimed: the claim that was found again. */
static const pare_claim *found(const pare_cert *again, const pare_claim *c)
{
    for (size_t i = 0; i < again->nclaims; i++)
        if (pare_same_claim(&again->claims[i], c)) return &again->claims[i];
    return NULL;
}

static void print_claims(const cli *c, const pare_cert *cert, const pare_cert *again)
{
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i], *const now = found(again, t);
        const pare_section s = pare_kinds[t->kind].section;
        const char *const words = out_claim_words(c->arena, t);
        char here[64] = "";
        if (now && s == PARE_OBSERVATION) snprintf(here, sizeof here, "; here %.4g", now->value);
        if (s == PARE_EVIDENCE && !again->evidence) continue;
        if (s == PARE_HYPOTHESIS)
            out_verdict(out_section_words[s], true, "as claimed", "  %s", words ? words : "");
        else
            out_verdict(out_section_words[s], true, "holds", "   %s%s", words ? words : "", here);
    }
}

/* What the verifier had to take from the writer, or left alone. */
static void print_unchecked(const pare_cert *cert, const pare_cert *again)
{
    size_t evidence = 0;
    for (size_t i = 0; i < cert->nclaims; i++)
        evidence += pare_kinds[cert->claims[i].kind].section == PARE_EVIDENCE;
    if (evidence > 0 && !again->evidence)
        out_row("not checked", "%zu figure%s of evidence (--evidence checks them)", evidence,
                evidence == 1 ? "" : "s");
    if (cert->data.candidates > 0)
        out_row("on trust",
                "the writer's word that the cut was fitted to %zu inputs, none of "
                "these, and that they decided between no other cuts",
                cert->data.fitted.n);
}

/* What was checked, one by one: only reached when all of it holds. */
static void print_people(const cli *c, const pare_cert *cert, const pare_cert *again,
                         const verify_opts *o)
{
    char buf[40];
    out_row("certificate", "%s (%s)", c->operand[0], cert->reduction);
    out_verdict("input", true, "holds", "   %s: sha256 %.12s..., %zu tensors",
                shown(o->input, cert->input.path), cert->input.sha256, cert->input.ntensors);
    out_verdict("output", true, "holds", "   %s: sha256 %.12s..., %zu tensors",
                shown(o->output, cert->output.path), cert->output.sha256, cert->output.ntensors);
    if (cert->data.path)
        out_verdict("data", true, "holds", "   %s: sha256 %.12s..., %zu %s",
                    shown(o->data, cert->data.path), cert->data.sha256, cert->data.count,
                    cert->data.count == 1 ? "input" : "inputs");
    else
        out_verdict("data", true, "holds", "   %zu %s inputs of %zu tokens, seed %llu",
                    cert->data.count, cert->data.kind, cert->data.tokens,
                    (unsigned long long)cert->seed);
    for (size_t i = 0; i < cert->nchain; i++)
        out_verdict("link", true, "holds", "   %zu: %s", i, cert->chain[i]->reduction);
    out_verdict("proven", true, "holds", "   %s",
                pare_ub_format(buf, pare_ub_exact(cert->proven), 4));
    out_verdict("measured", true, "holds", "   %.4g; here %.4g", cert->measured, again->measured);
    print_claims(c, cert, again);
    out_row("norm", "%s", cert->norm);
    out_row("domain", "%s", cert->domain);
    print_unchecked(cert, again);
    out_verdict("verdict", true, "holds", " in every part that was checked");
}

/* The answer "no" is a result as well. */
static pare_status print_json(cli *c, const pare_cert *cert, pare_status answer)
{
    cJSON *root = out_json_begin(c);
    bool ok = root && pare_json_add_bool(root, "holds", answer == PARE_OK);
    if (ok && cert) ok = out_json_cert(root, c->operand[0], cert);
    if (ok && answer) ok = pare_json_add_string(root, "reason", c->err.msg);
    return out_json(c, root, ok);
}

/* Says no, in words or as JSON; the reason is in c->err. */
static pare_status refuse(cli *c, const pare_cert *cert, pare_status answer)
{
    if (!c->json) {
        out_verdict("verdict", false, "not true", ": the reason is on stderr");
        return answer;
    }
    const pare_status printed = print_json(c, cert, answer);
    return printed ? printed : answer;
}

/* Who names the model means the certificate beside it. */
static void point_beside(cli *c, const char *path)
{
    const char *const cert = cli_suffixed(c, path, ".cert.json");
    if (cert && pare_file_exists(cert)) cli_note(c, "the certificate of %s is %s", path, cert);
}

static pare_status verify(cli *c, const verify_opts *o)
{
    pare_verify_opts opts = {
        .input = o->input, .output = o->output, .data = o->data, .evidence = o->evidence};
    pare_cert *cert = NULL, *again = NULL;
    const char *path = c->operand[0];
    cJSON *json = NULL;
    pare_status st = cli_name(c, pare_json_read(&json, path, &c->err), path); /* once */
    if (!st && length_cert_is(json)) {
        const pare_status is = length_cert_verify(
            c, path, json, &(length_verify){o->input, o->output, o->data, o->backend});
        cJSON_Delete(json);
        return cli_name(c, is == PARE_ERR_VERIFY ? refuse(c, NULL, is) : is, path);
    }
    if (!st && o->backend)
        st = pare_fail(&c->err, PARE_ERR_USAGE, "--backend belongs to certificates of length");
    if (!st) st = cli_name(c, pare_cert_parse(&cert, c->arena, json, path, &c->err), path);
    cJSON_Delete(json);
    if (st == PARE_ERR_INPUT) point_beside(c, path);
    if (st && st != PARE_ERR_VERIFY) return st;
    if (!st && o->data && !cert->data.path)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--data: %s speaks of random inputs from its seed, not of a file", path);
    if (!st) st = pare_cert_check(&again, c->arena, cert, path, cli_verify_opts(c, &opts), &c->err);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (st == PARE_ERR_VERIFY) return cli_name(c, refuse(c, cert, st), path);
    if (st == PARE_ERR_IO)
        cli_note(c, "--input, --output and --data say where files are that were moved");
    if (!st && c->json) return print_json(c, cert, st);
    if (!st) print_people(c, cert, again, o);
    return cli_name(c, st, path);
}

int cmd_verify(int argc, char **argv)
{
    verify_opts o = {0};
    const opt own[] = {
        {.name = "input",
         .kind = OPT_TEXT,
         .to = &o.input,
         .metavar = "MODEL",
         .help = "the model before the cut",
         .unset = "as in CERT"},
        {.name = "output",
         .kind = OPT_TEXT,
         .to = &o.output,
         .metavar = "MODEL",
         .help = "the model after it",
         .unset = "as in CERT"},
        {.name = "data",
         .kind = OPT_TEXT,
         .to = &o.data,
         .metavar = "D",
         .help = "the inputs it speaks of",
         .unset = "as in CERT"},
        {.name = "evidence",
         .kind = OPT_FLAG,
         .to = &o.evidence,
         .help = "compute the evidence again as well (optimality figures)"},
        {.name = "backend",
         .kind = OPT_TEXT,
         .to = &o.backend,
         .metavar = "B",
         .help = "of a length plan: run on this engine, too",
         .unset = "our f64"},
    };
    static const char *const operands[] = {"CERT", NULL};
    const opt_spec spec = {
        .command = "verify",
        .args = "CERT [--input MODEL] [--output MODEL] [--data D]",
        .about = "Proves every theorem of a certificate again from the files it names, makes its\n"
                 "observations again, and compares files, architectures, tensors and inputs.\n"
                 "Exit: 0 it holds; 4 it does not, and why; 2 unreadable or a file is missing.",
        .examples = {"verify folded.safetensors.cert.json"},
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_NO_OUT, NULL, argc, argv, &rc)) return rc;
    return cli_finish(&c, verify(&c, &o));
}

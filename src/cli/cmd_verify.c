/* cmd_verify.c - pare verify: a certificate proven again from its files; the exit code is the
 * answer. */
#include "backend.h"
#include "show_cut.h"

#include <pare/cut.h>

#include <math.h>
#include <string.h>

typedef struct verify_opts {
    const char *input, *output, *data, *backend, *unpack;
    bool evidence, force;
} verify_opts;

/* How many claims of a section were found again. */
static size_t count_of(const pare_cert *cert, pare_section s)
{
    size_t n = 0;
    for (size_t i = 0; i < cert->nclaims; i++) n += pare_kinds[cert->claims[i].kind].section == s;
    return n;
}

/* The claims beside the headline, of a chain those of all its cuts. */
static void print_counts(const pare_cert *cert, const pare_cert *again)
{
    static const struct {
        pare_section section;
        const char *one, *many;
    } kinds[] = {{PARE_THEOREM, "theorem proven again", "theorems proven again"},
                 {PARE_HYPOTHESIS, "hypothesis checked again", "hypotheses checked again"},
                 {PARE_OBSERVATION, "measurement made again", "measurements made again"},
                 {PARE_PAPER, "figure of a paper", "figures of papers"},
                 {PARE_EVIDENCE, "figure of evidence", "figures of evidence"}};
    const char *separator = "";
    out_part("%-13s", "also holds");
    if (cert->nchain > 0) {
        out_part("%zu %s", cert->nchain, cert->nchain == 1 ? "cut" : "cuts of the chain");
        separator = ", ";
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = count_of(cert, kinds[k].section);
        for (size_t i = 0; i < cert->nchain; i++) n += count_of(cert->chain[i], kinds[k].section);
        if (n == 0 || (kinds[k].section == PARE_EVIDENCE && !again->evidence)) continue;
        out_part("%s%zu %s", separator, n, n == 1 ? kinds[k].one : kinds[k].many);
        separator = ", ";
    }
    out_line("%s", *separator ? " (-v lists them)" : "nothing beside it is claimed");
}

/* Every claim, with what was measured here. */
static void print_details(const cli *c, const pare_cert *cert, const pare_cert *again)
{
    char bound[40];
    for (size_t i = 0; i < cert->nchain; i++)
        out_verdict("cut", true, "holds", "   %zu: %s", i + 1, cert->chain[i]->reduction);
    out_verdict("proven", true, "holds", "   %s",
                pare_ub_format(bound, pare_ub_exact(cert->proven), 4));
    out_verdict("measured", true, "holds", "   %.4g; here %.4g", cert->measured, again->measured);
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i], *now = again->claims;
        const pare_claim *const end = now + again->nclaims;
        const pare_section s = pare_kinds[t->kind].section;
        const char *const words = out_claim_words(c->arena, t);
        char here[64] = "";
        if (s == PARE_EVIDENCE && !again->evidence) continue;
        while (now < end && !pare_same_claim(now, t)) now++;
        if (now < end && s == PARE_OBSERVATION)
            snprintf(here, sizeof here, "; here %.4g", now->value);
        if (s == PARE_HYPOTHESIS)
            out_verdict(out_section_words[s], true, "as claimed", "  %s", words ? words : "");
        else
            out_verdict(out_section_words[s], true, "holds", "   %s%s", words ? words : "", here);
    }
    out_row("norm", "%s", cert->norm);
}

/* Only reached when everything that was checked holds. */
static void print_text(const cli *c, const pare_verified *v, const verify_opts *o)
{
    const pare_cert *const cert = v->claimed, *const again = v->again;
    const pare_data_ref *const data = &cert->data;
    char bound[40];
    pare_ub_format(bound, pare_ub_exact(cert->proven), 4);
    if (isinf(cert->proven))
        out_verdict("verdict", true, "HOLDS", "  but proves nothing: the bound is infinite");
    else if (strcmp(cert->norm, PARE_NORM_HEADLINE) == 0)
        out_verdict("verdict", true, "HOLDS", "  no output moves by more than %s", bound);
    else
        out_verdict("verdict", true, "HOLDS", "  %s is at most %s", cert->norm, bound);
    out_row("", "on %s", cert->domain);
    show_terms(cert, NULL);
    out_row("certificate", "%s (%s)", v->path, cert->reduction);
    out_verdict("input", true, "holds", "   %s: sha256 %.12s..., %zu tensors",
                o->input ? o->input : cert->input.path, cert->input.sha256, cert->input.ntensors);
    out_verdict("output", true, "holds", "   %s: sha256 %.12s..., %zu tensors",
                o->output ? o->output : cert->output.path, cert->output.sha256,
                cert->output.ntensors);
    if (data->path)
        out_verdict("data", true, "holds", "   %s: sha256 %.12s..., %zu %s",
                    o->data ? o->data : data->path, data->sha256, data->count,
                    data->count == 1 ? "input" : "inputs");
    else
        out_verdict("data", true, "holds", "   %zu %s inputs of %zu tokens, seed %llu", data->count,
                    data->kind, data->tokens, (unsigned long long)cert->seed);
    if (c->verbose)
        print_details(c, cert, again);
    else
        print_counts(cert, again);
    /* What the verifier left alone, or had to take from the writer. */
    const size_t evidence = count_of(cert, PARE_EVIDENCE);
    if (evidence > 0 && !again->evidence)
        out_row("not checked", "%zu figure%s of evidence (--evidence checks them)", evidence,
                evidence == 1 ? "" : "s");
    if (data->candidates > 0)
        out_row("on trust",
                "that the cut was fitted to %zu inputs and none of these, and that these inputs "
                "did not choose between cuts",
                data->fitted.n);
}

/* The answer "no" is a result as well. */
static pare_status print_json(cli *c, const char *path, const pare_cert *cert, pare_status answer)
{
    cJSON *root = out_json_begin(c);
    bool ok = root && pare_json_add_bool(root, "holds", answer == PARE_OK);
    if (ok && cert) ok = out_json_cert(root, path, cert);
    if (ok && answer) ok = pare_json_add_string(root, "reason", c->err.msg);
    return out_json(c, root, ok);
}

/* The verdict and its reason on stdout, in words or as JSON; stderr says no more than that. */
static pare_status refuse(cli *c, const char *path, const pare_cert *cert, pare_status answer)
{
    if (c->json) {
        const pare_status printed = print_json(c, path, cert, answer);
        return printed ? printed : cli_name(c, answer, path);
    }
    const bool files = strstr(c->err.msg, "sha256") != NULL;
    const size_t n = strlen(path); /* the next line names the file */
    const bool named = strncmp(c->err.msg, path, n) == 0 && strncmp(c->err.msg + n, ": ", 2) == 0;
    out_verdict("verdict", false, "REFUSED", "  %s", c->err.msg + (named ? n + 2 : 0));
    out_row("certificate", "%s%s%s%s", path, cert ? " (" : "", cert ? cert->reduction : "",
            cert ? ")" : "");
    if (files)
        out_row("what to do", "if a file was moved or renamed, say where it is (--input, --output, "
                              "--data); if it was changed, make the cut again");
    else
        out_row("what to do", "do not rely on this certificate; make the cut again to get one that "
                              "holds");
    return pare_fail(&c->err, answer, "%s is refused", path);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* The library's messages in the words of the options. */
static pare_status reword(cli *c, const verify_opts *o, const pare_verified *v, pare_status st)
{
    if (st == PARE_ERR_USAGE && o->backend && !v->is_length)
        return cli_only(c, "backend", false, "certificates of pare length");
    cli_reword(c, st, "data has no effect", "--data has no effect");
    if (st == PARE_ERR_USAGE) cli_reword(c, st, "engine:", "--backend:");
    cli_reword(c, st, "engine onnx:", "--backend onnx:");
    if (st == PARE_ERR_INPUT && strstr(c->err.msg, "is a plan without a certificate"))
        return pare_fail(&c->err, st,
                         "%s is a plan without a certificate; pare length --certify writes both",
                         v->path);
    if (st == PARE_ERR_IO && v->claimed)
        cli_note(c, "if files were moved, say where they are: --input, --output, --data");
    return st;
}

/* --unpack: no proof, the files in plain form. */
static pare_status unpack(cli *c, const verify_opts *o)
{
    pare_unpacked u;
    const pare_verify_file_opts opts = {
        .input = o->input, .output = o->output, .data = o->data, .exec = &c->exec};
    const pare_status st =
        pare_unpack_file(&u, c->arena, c->operand[0], o->unpack, o->force, &opts, &c->err);
    cli_bar_end(c);
    if (st == PARE_ERR_VERIFY) return refuse(c, u.path, NULL, st);
    if (st) return reword(c, o, &(pare_verified){.path = u.path}, st);
    if (c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        pare_json_add_values(root,
                                             "certificate:s folder:s proven:b inputs:z links:z",
                                             u.path, o->unpack, false, u.inputs, u.links));
    }
    out_row("wrote", "%s: %s, %zu %s as the model sees %s", o->unpack,
            u.is_length ? "the model and the numbers of the run" : "both models", u.inputs,
            u.inputs == 1 ? "input" : "inputs", u.inputs == 1 ? "it" : "them");
    if (u.links) out_row("", "and the same of %zu cuts, in folders 1 to %zu", u.links, u.links);
    out_row("certificate", "%s: its hashes are those of the files", u.path);
    out_row("proven", "nothing: leave out --unpack to prove the certificate again");
    return PARE_OK;
}

static pare_status verify(cli *c, void *self)
{
    const verify_opts *const o = self;
    pare_verified v;
    const char *const given = c->operand[0], *found;
    const pare_engine engine = backend_engine(c, o->backend, 0);
    const pare_verify_file_opts opts = {.input = o->input,
                                        .output = o->output,
                                        .data = o->data,
                                        .evidence = o->evidence,
                                        .engine = o->backend ? &engine : NULL,
                                        .exec = &c->exec};
    pare_status st = cli_only(c, "force", o->unpack != NULL, "--unpack");
    if (!st) st = cli_only(c, "evidence,backend", !o->unpack, "a proof, not with --unpack");
    if (!st) st = pare_find_certificate(&found, c->arena, given, &c->err);
    if (st) return st;
    if (o->unpack) return unpack(c, o);
    /* Who names a model, or the plan of a length, means the certificate beside it. */
    if (strcmp(found, given) != 0) {
        size_t n = strlen(given);
        while (n > 1 && given[n - 1] == '/') n--;
        const char *const chain = pare_sprintf(c->arena, "%.*s.chain.cert.json", (int)n, given);
        if (!chain) return pare_no_memory(&c->err);
        cli_note(c, "checking %s, the certificate of %s", found, given);
        if (pare_file_exists(chain))
            cli_note(c, "%s is the certificate of the whole chain of cuts", chain);
    }
    st = pare_verify_file_report(&v, c->arena, given, &opts, &c->err);
    cli_bar_end(c);
    if (st == PARE_ERR_VERIFY) return refuse(c, v.path, v.claimed, st);
    if (st) return reword(c, o, &v, st);
    if (v.is_length && c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        pare_json_add_values(root, "holds:b proven:g measured:g other_engine:g",
                                             true, v.length.again.proven, v.length.again.measured,
                                             v.length.other_engine));
    }
    if (c->json) return print_json(c, v.path, v.claimed, st);
    if (v.is_length) {
        const pare_length_claims *const k = &v.length.claims;
        char proven[40], apriori[40];
        pare_ub_format(proven, pare_ub_exact(k->proven), 4);
        pare_ub_format(apriori, pare_ub_exact(k->apriori), 4);
        out_verdict("verdict", true, "HOLDS",
                    "  no output of a head's attention is off by more than %s", proven);
        out_row("", "on %s", k->domain);
        out_row("certificate", "%s (length)", v.path);
        for (size_t i = 0; i < PARE_LENGTH_FILES; i++)
            if (k->files[i].path)
                out_verdict(pare_length_file_keys[i], true, "holds", "   %s: sha256 %.12s...",
                            k->files[i].path, k->files[i].sha256);
        out_verdict("calls", true, "holds", "   %zu", k->calls);
        out_verdict("a priori", true, "holds", "   %s", apriori);
        out_verdict("proven", true, "holds", "   %s", proven);
        out_verdict("measured", true, "holds", "   %.4g", k->measured);
        out_verdict("other engine", true, "holds", "   %s: largest difference %.4g",
                    o->backend ? o->backend : "the f64 engine of pare", v.length.other_engine);
    } else
        print_text(c, &v, o);
    return PARE_OK;
}

int cmd_verify(int argc, char **argv)
{
    verify_opts o = {0};
    /* clang-format off */
    const opt own[] = {
        {.name = "input", .kind = OPT_TEXT, .to = &o.input, .metavar = "MODEL", .unset = "as the certificate says",
         .help = "where the model before the cut is now"},
        {.name = "output", .kind = OPT_TEXT, .to = &o.output, .metavar = "MODEL", .unset = "as the certificate says",
         .help = "where the model after the cut is now"},
        {.name = "data", .kind = OPT_TEXT, .to = &o.data, .metavar = "FILE", .unset = "as the certificate says",
         .help = "where the file of the proven inputs is now"},
        {.name = "evidence", .kind = OPT_FLAG, .to = &o.evidence,
         .help = "also recompute figures that are informative but not part of the proof, such as the best possible error"},
        {.name = "backend", .kind = OPT_TEXT, .to = &o.backend, .metavar = "B", .unset = "the f64 engine of pare", .rare = true,
         .help = "of a certificate of pare length: run the plan on this engine as well"},
        {.name = "unpack", .kind = OPT_TEXT, .to = &o.unpack, .metavar = "DIR", .unset = "prove", .group = "Instead of a proof",
         .help = "compare the files with the certificate's hashes and write them in plain form into the new folder DIR, "
                 "for another checker: models without tickets, inputs as arrays; nothing is proven"},
        {.name = "force", .letter = 'f', .kind = OPT_FLAG, .to = &o.force,
         .help = "with --unpack: replace a folder that it has made before"},
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "verify",
        .args = "CERT|MODEL [--input MODEL] [--output MODEL] [--data FILE] [--unpack DIR]",
        .about = "Checks a certificate: compares both models and the data with it and proves all\n"
                 "of its theorems again. Given a MODEL, it checks MODEL.cert.json.\n"
                 "Exit code: 0 it holds; 4 it is refused; 2 a file is missing or unreadable.",
        .examples = {"verify small.safetensors",
                     "verify moved.cert.json --input models/large.safetensors"},
        OPT_ROWS(own),
        .operands = (const char *const[]){"CERT", NULL},
    };
    return cli_command(&spec, CLI_NO_OUT, NULL, argc, argv, verify, &o);
}

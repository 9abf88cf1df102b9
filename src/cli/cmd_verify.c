/* pare verify: a certificate proven again from its files; the exit code is the answer. */
#include "out.h"
#include "prove_length.h"

#include <pare/publish.h>

#include <math.h>
#include <string.h>

typedef struct verify_opts {
    const char *input, *output, *data, *backend;
    bool evidence;
    const char *cert; /* what was named, or the certificate beside it */
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
                "that the cut was fitted to %zu inputs and none of these, and that these inputs "
                "did not choose between cuts",
                cert->data.fitted.n);
}

/* The headline in one sentence. */
static void print_verdict(const pare_cert *cert)
{
    char bound[40];
    pare_ub_format(bound, pare_ub_exact(cert->proven), 4);
    if (isinf(cert->proven))
        out_verdict("verdict", true, "HOLDS", "  but proves nothing: the bound is infinite");
    else if (strcmp(cert->norm, PARE_NORM_HEADLINE) == 0)
        out_verdict("verdict", true, "HOLDS", "  no output moves by more than %s", bound);
    else
        out_verdict("verdict", true, "HOLDS", "  %s is at most %s", cert->norm, bound);
    out_row("", "on %s", cert->domain);
}

/* What was compared, file by file. */
static void print_files(const cli *c, const pare_cert *cert, const verify_opts *o)
{
    out_row("certificate", "%s (%s)", o->cert, cert->reduction);
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
    for (size_t i = 0; c->verbose && i < cert->nchain; i++)
        out_verdict("cut", true, "holds", "   %zu: %s", i + 1, cert->chain[i]->reduction);
}

/* How many claims of a section were found again. */
static size_t count_of(const pare_cert *cert, pare_section s)
{
    size_t n = 0;
    for (size_t i = 0; i < cert->nclaims; i++) n += pare_kinds[cert->claims[i].kind].section == s;
    return n;
}

/* "1 theorem", "2 theorems" */
static void add_count(bool *begun, size_t n, const char *one, const char *many)
{
    if (n == 0) return;
    out_part("%s%zu %s", *begun ? ", " : "", n, n == 1 ? one : many);
    *begun = true;
}

/* The claims beside the headline, of a chain those of all its cuts. */
static void print_counts(const pare_cert *cert, const pare_cert *again)
{
    size_t n[PARE_SECTIONS] = {0};
    bool begun = false;
    for (int s = 0; s < PARE_SECTIONS; s++) {
        n[s] = count_of(cert, (pare_section)s);
        for (size_t i = 0; i < cert->nchain; i++) n[s] += count_of(cert->chain[i], (pare_section)s);
    }
    out_part("%-13s", "also holds");
    add_count(&begun, cert->nchain, "cut", "cuts of the chain");
    add_count(&begun, n[PARE_THEOREM], "theorem proven again", "theorems proven again");
    add_count(&begun, n[PARE_HYPOTHESIS], "hypothesis checked again", "hypotheses checked again");
    add_count(&begun, n[PARE_OBSERVATION], "measurement made again", "measurements made again");
    add_count(&begun, n[PARE_PAPER], "figure of a paper", "figures of papers");
    if (again->evidence)
        add_count(&begun, n[PARE_EVIDENCE], "figure of evidence", "figures of evidence");
    out_line("%s", begun ? " (-v lists them)" : "nothing beside it is claimed");
}

/* Only reached when everything that was checked holds. */
static void print_people(const cli *c, const pare_cert *cert, const pare_cert *again,
                         const verify_opts *o)
{
    char buf[40];
    print_verdict(cert);
    print_files(c, cert, o);
    if (c->verbose) {
        out_verdict("proven", true, "holds", "   %s",
                    pare_ub_format(buf, pare_ub_exact(cert->proven), 4));
        out_verdict("measured", true, "holds", "   %.4g; here %.4g", cert->measured,
                    again->measured);
        print_claims(c, cert, again);
        out_row("norm", "%s", cert->norm);
    } else {
        print_counts(cert, again);
    }
    print_unchecked(cert, again);
}

/* The answer "no" is a result as well. */
static pare_status print_json(cli *c, const verify_opts *o, const pare_cert *cert,
                              pare_status answer)
{
    cJSON *root = out_json_begin(c);
    bool ok = root && pare_json_add_bool(root, "holds", answer == PARE_OK);
    if (ok && cert) ok = out_json_cert(root, o->cert, cert);
    if (ok && answer) ok = pare_json_add_string(root, "reason", c->err.msg);
    return out_json(c, root, ok);
}

/* The verdict and its reason on stdout, in words or as JSON; stderr says no more than that. */
static pare_status refuse(cli *c, const verify_opts *o, const pare_cert *cert, pare_status answer)
{
    if (c->json) {
        const pare_status printed = print_json(c, o, cert, answer);
        return printed ? printed : cli_name(c, answer, o->cert);
    }
    const bool files = strstr(c->err.msg, "sha256") != NULL;
    const size_t n = strlen(o->cert); /* the next line names the file */
    const bool named =
        strncmp(c->err.msg, o->cert, n) == 0 && strncmp(c->err.msg + n, ": ", 2) == 0;
    out_verdict("verdict", false, "REFUSED", "  %s", c->err.msg + (named ? n + 2 : 0));
    out_row("certificate", "%s%s%s%s", o->cert, cert ? " (" : "", cert ? cert->reduction : "",
            cert ? ")" : "");
    if (files)
        out_row("what to do", "if a file was moved or renamed, say where it is (--input, --output, "
                              "--data); if it was changed, make the cut again");
    else
        out_row("what to do", "do not rely on this certificate; make the cut again to get one that "
                              "holds");
    return pare_fail(&c->err, answer, "%s is refused", o->cert);
}

/* ---- which certificate ----------------------------------------------------------------------- */

/* Who names a model, or the plan of a length, means the certificate beside it. */
static pare_status find_certificate(cli *c, verify_opts *o)
{
    static const char tail[] = ".cert.json";
    const char *const given = c->operand[0];
    size_t n = strlen(given), t = sizeof tail - 1;
    o->cert = given;
    if (n > t && strcmp(given + n - t, tail) == 0) return PARE_OK;
    while (n > 1 && given[n - 1] == '/') n--;
    const char *const name = pare_strndup(c->arena, given, n);
    const char *const beside = name ? cli_suffixed(c, name, tail) : NULL;
    const char *const inside = name ? cli_suffixed(c, name, "/pare.cert.json") : NULL;
    const char *const chain = name ? cli_suffixed(c, name, ".chain.cert.json") : NULL;
    if (!beside || !inside || !chain) return pare_no_memory(&c->err);
    const char *const found = pare_file_exists(beside)   ? beside
                              : pare_file_exists(inside) ? inside
                                                         : NULL;
    if (found) {
        cli_note(c, "checking %s, the certificate of %s", found, given);
        o->cert = found;
        if (pare_file_exists(chain))
            cli_note(c, "%s is the certificate of the whole chain of cuts", chain);
        return PARE_OK;
    }
    if (!pare_is_dir(given)) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_INPUT,
                     "%s is a folder, and there is no certificate %s beside it or %s in it", given,
                     beside, inside);
}

/* What was read is not JSON: a model, most likely. */
static pare_status not_a_certificate(cli *c, const verify_opts *o)
{
    pare_model *m = NULL;
    const pare_err why = c->err;
    const bool model = pare_model_load(&m, o->cert, &c->err) == PARE_OK;
    pare_model_free(m);
    if (!model && !strstr(why.msg, "line 1, column 1:")) { /* damaged JSON: where */
        const size_t n = strlen(o->cert);
        const bool named = strncmp(why.msg, o->cert, n) == 0 && strncmp(why.msg + n, ": ", 2) == 0;
        return pare_fail(&c->err, PARE_ERR_INPUT, "%s is not a certificate: %s", o->cert,
                         why.msg + (named ? n + 2 : 0));
    }
    if (!model)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s is not JSON; give a certificate (OUT.cert.json)", o->cert);
    return pare_fail(&c->err, PARE_ERR_INPUT,
                     "%s is a model, and there is no certificate %s.cert.json beside it; every cut "
                     "writes one",
                     o->cert, o->cert);
}

static pare_status verify_length(cli *c, const verify_opts *o, const cJSON *json)
{
    const pare_status st = length_cert_verify(
        c, o->cert, json, &(length_verify){o->input, o->output, o->data, o->backend});
    return st == PARE_ERR_VERIFY ? refuse(c, o, NULL, st) : cli_name(c, st, o->cert);
}

static pare_status verify_cut(cli *c, const verify_opts *o, const cJSON *json)
{
    pare_verify_opts opts = {
        .input = o->input, .output = o->output, .data = o->data, .evidence = o->evidence};
    pare_cert *cert = NULL, *again = NULL;
    const char *const path = o->cert;
    pare_status st = pare_cert_parse(&cert, c->arena, json, path, &c->err);
    if (st == PARE_ERR_VERIFY) return refuse(c, o, NULL, st);
    if (st) return cli_name(c, st, path);
    if (o->data && !cert->data.path)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--data has no effect: %s is about random inputs made from its seed, not "
                         "about a file",
                         path);
    st = pare_cert_check(&again, c->arena, cert, path, cli_verify_opts(c, &opts), &c->err);
    cli_bar_end(c);
    if (st == PARE_ERR_VERIFY) return refuse(c, o, cert, st);
    if (st == PARE_ERR_IO)
        cli_note(c, "if files were moved, say where they are: --input, --output, --data");
    if (!st && c->json) return print_json(c, o, cert, st);
    if (!st) print_people(c, cert, again, o);
    return cli_name(c, st, path);
}

/* JSON of something else. */
static pare_status other_json(cli *c, const verify_opts *o, const cJSON *json)
{
    if (pare_json_has(json, "pare_plan"))
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s is a plan without a certificate; pare length --certify writes both",
                         o->cert);
    return pare_fail(&c->err, PARE_ERR_INPUT, "%s is JSON, but not a certificate", o->cert);
}

static pare_status verify(cli *c, verify_opts *o)
{
    cJSON *json = NULL;
    pare_status st = find_certificate(c, o);
    if (st) return st;
    st = pare_json_read(&json, o->cert, &c->err); /* once */
    if (st == PARE_ERR_INPUT) return not_a_certificate(c, o);
    if (st) return cli_name(c, st, o->cert);
    if (length_cert_is(json))
        st = verify_length(c, o, json);
    else if (!pare_json_has(json, "pare"))
        st = other_json(c, o, json);
    else if (!(st = cli_only(c, "backend", false, "certificates of pare length")))
        st = verify_cut(c, o, json);
    cJSON_Delete(json);
    return st;
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
    };
    /* clang-format on */
    static const char *const operands[] = {"CERT", NULL};
    const opt_spec spec = {
        .command = "verify",
        .args = "CERT|MODEL [--input MODEL] [--output MODEL] [--data FILE]",
        .about = "Checks a certificate: compares both models and the data with it and proves all\n"
                 "of its theorems again. Given a MODEL, it checks MODEL.cert.json.\n"
                 "Exit code: 0 it holds; 4 it is refused; 2 a file is missing or unreadable.",
        .examples = {"verify small.safetensors",
                     "verify moved.cert.json --input models/large.safetensors"},
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_NO_OUT, NULL, argc, argv, &rc)) return rc;
    return cli_finish(&c, verify(&c, &o));
}

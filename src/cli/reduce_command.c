/* reduce_command.c - what the commands of all reductions share (reduce_command.h). */
#include "reduce_command.h"
#include "bench.h"
#include "warn_text.h"

#include <math.h>
#include <string.h>

/* ---- results ------------------------------------------------------------------------------- */

bool reduce_json_front(cJSON *root, const pare_reduction *r)
{
    return root && out_json_facts(root, "input", &r->before) &&
           out_json_facts(root, "output", &r->after) && out_json_cert(root, r->cert_path, &r->cert);
}

bool reduce_json_end(cJSON *root, const pare_reduction *r)
{
    const pare_evaluation *const before = &r->metric_before, *const after = &r->metric_after;
    const bool text = r->task == PARE_TASK_TEXT, timed = r->has_attention_ms;
    if (r->has_metric &&
        !pare_json_add_record(
            root, "metric",
            "name:s before:g after:g perplexity_before:N perplexity_after:N counted:z inputs:z "
            "held_out:b",
            before->metric, before->value, after->value, text ? before->scores.perplexity : NAN,
            text ? after->scores.perplexity : NAN, before->scores.counted, r->metric_inputs,
            r->held_out))
        return false;
    if (r->cosine.rows &&
        !pare_json_add_record(root, "cosine", "rows:z mean:g median:g p05:g least:g held_out:b",
                              r->cosine.rows, r->cosine.mean, r->cosine.median, r->cosine.p05,
                              r->cosine.least, r->held_out))
        return false;
    /* Beside the largest output a bound can be called vacuous. */
    return pare_json_add_values(root, "largest_output:N", r->largest_output) &&
           pare_json_add_record(root, "time_ms",
                                "before:g after:g attention_before:N attention_after:N reduction:g",
                                r->ms_before, r->ms_after, timed ? r->attn_before : NAN,
                                timed ? r->attn_after : NAN, r->ms_reduction);
}

/* What the certificate must not hold: times, host facts, the command; and the sizes, so that a
 * report needs no model. */
pare_status reduce_write_run_file(const reduction *self)
{
    cli *const c = self->c;
    const pare_reduction *const r = &self->r;
    bench_machine host;
    bench_machine_read(&host);
    cJSON *const root = out_json_begin(c);
    /* Folders too, by the hash that the certificate has: a report compares them. */
    const bool ok =
        pare_json_add_values(root, "line:s version:s", c->line, pare_version()) &&
        pare_json_add_record(root, "machine", "cpu:s cores:z", host.cpu, (size_t)host.cores) &&
        out_json_facts(root, "input", &r->before) && out_json_facts(root, "output", &r->after) &&
        reduce_json_end(root, r);
    return out_json_file(c, root, ok, self->run_path);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* What is odd about a model that was made. */
static void note_made(cli *c, const pare_reduction *r)
{
    const pare_depth_report *const d = &r->depth;
    size_t out_of_reach = 0;
    if (d->unknowns > d->tokens)
        cli_note(c,
                 "the cut is fitted to %zu tokens, fewer than the %zu unknowns of one output; more "
                 "--data would help",
                 d->tokens, d->unknowns);
    for (size_t i = 0; i < r->ticket.n; i++) out_of_reach += r->ticket.matrix[i].reach > 1;
    if (out_of_reach)
        cli_note(
            c,
            "%zu of %zu matrices have weights that the random products cannot reach; more bits "
            "or a larger --scale help",
            out_of_reach, r->ticket.n);
}

pare_status reduce_on_event(void *self, pare_reduce_event e, const pare_reduction *r)
{
    const reduction *const own = self;
    cli *const c = own->c;
    const pare_heldout *const h = &r->inputs;
    switch (e) {
    case PARE_REDUCE_LOADED:
        if (own->o.heldout) warn_text(c, own->o.data, &h->fit_notes);
        if (h->held.path) warn_text(c, h->held.path, &h->held.data.notes);
        break;
    case PARE_REDUCE_MADE:
        note_made(c, r);
        /* The ends of a chain are known once its certificates are read. */
        if (r->cert.nchain > 0) {
            const pare_status st = cli_may_write(c, r->cert_path, r->from);
            return st ? st : cli_may_write(c, r->cert_path, r->to);
        }
        break;
    case PARE_REDUCE_PROVING: {
        /* A long proof says so where there is no bar. The rate is of one core; a proof is some ten
         * passes, and one in double-double where that may be needed. */
        const double long_time = 10, rate = 4e8;
        const double seconds = r->proof_work / rate / fmin((double)c->threads, 8);
        const size_t n = h->held.set.n;
        if (r->new_inputs)
            cli_note(
                c,
                "proving on %zu held-out input%s: if none exceeds the bound, at most %.1f %% of "
                "new inputs do, confidence 95 %%",
                n, n == 1 ? "" : "s", ceil(1e3 * r->new_share) / 10);
        if (!c->bar.tty && seconds > long_time)
            cli_note(c, "proving on %zu input%s, which takes about %.0f %s", n, n == 1 ? "" : "s",
                     seconds < 120 ? seconds : seconds / 60, seconds < 120 ? "seconds" : "minutes");
        break;
    }
    case PARE_REDUCE_PUBLISHED: {
        const size_t n = h->held.data.inputs.n, prove = own->o.prove;
        c->stopped = r->cert.nchain > 0
                         ? "stopped before speed and quality were measured; the "
                           "certificate is written"
                         : "stopped before speed and quality were measured; the model "
                           "and its certificate are written";
        if (r->no_new_inputs) {
            const char *why = cli_replaced(c, r->no_new_inputs, "max_error", "--max-error");
            why = cli_replaced(c, why, "with heldout", "with --heldout");
            cli_note(c, "the certificate makes no statement about new inputs: %s", why);
        }
        if (prove > n)
            cli_note(c, "--prove %zu: there %s only %zu held-out input%s", prove,
                     n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
        break;
    }
    }
    return PARE_OK;
}

pare_status reduce_reword(cli *c, pare_status st)
{
    static const char *const words[][2] = {
        {"max_error", "--max-error"},
        {"max_bytes", "--max-bytes"},
        {"or set allow_larger", "or give --allow-larger"},
        {"set any_shape", "give --any-shape"},
        {"give a distance, up to which", "give --distance D, up to which"},
        {"(set blocks)", "(--blocks K)"},
        {"(with data more cuts", "(with --data more cuts"},
        {"edits are proven for one graph", "--edits works for one graph"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        cli_reword(c, st, words[i][0], words[i][1]);
    return st;
}

/* ---- precision ------------------------------------------------------------------------------- */

const char *const dtype_names[] = {"input", "f16", "bf16", "f32", "f64", NULL};

pare_dtype dtype_of(size_t choice)
{
    static const pare_dtype types[] = {(pare_dtype)0, PARE_F16, PARE_BF16, PARE_F32, PARE_F64};
    return types[choice];
}

static const char *name_of(pare_dtype t)
{
    for (size_t i = 1; dtype_names[i]; i++)
        if (dtype_of(i) == t) return dtype_names[i];
    return "";
}

void note_larger(cli *c, const facts *before, const facts *after)
{
    char b[64], a[64];
    const bool by_file = pare_compare_files(before->file_bytes);
    const uint64_t was = by_file ? before->file_bytes : before->size.bytes;
    const uint64_t is = by_file ? after->file_bytes : after->size.bytes;
    if (is <= was) return;
    const char *why = "of what is stored beside the weights";
    /* Read from a folder or written into one, such sums take no bytes there. */
    const uint64_t plain = after->size.parameters * pare_dtype_size(after->dtype);
    const uint64_t sums = after->size.bytes > plain ? after->size.bytes - plain : 0;
    if (!pare_is_dir(after->path) && sums > (is - was) / 2)
        why = pare_sprintf(c->arena, "some weights are sums or products that need more than %s",
                           name_of(after->dtype));
    else if (after->size.bytes > before->size.bytes)
        why = after->dtype == before->dtype
                  ? "it has more weights"
                  : pare_sprintf(c->arena, "most of its weights are %s, those of the input %s",
                                 name_of(after->dtype), name_of(before->dtype));
    cli_note(c, "larger than the input: %s -> %s%s, because %s", out_bytes(b, was),
             out_bytes(a, is), by_file ? "" : " of weights", why ? why : "of its weights");
}

/* ---- the command ----------------------------------------------------------------------------- */

pare_status reduce_paths(reduction *r, const char *cert_path)
{
    static const char tail[] = ".cert.json";
    const size_t n = strlen(cert_path), t = sizeof tail - 1;
    const bool usual = n > t && strcmp(cert_path + n - t, tail) == 0;
    r->r.cert_path = cert_path;
    r->run_path = pare_sprintf(r->c->arena, "%.*s.run.json", (int)(usual ? n - t : n), cert_path);
    return r->run_path ? PARE_OK : pare_no_memory(&r->c->err);
}

bool reduce_names_folder(const char *from, const char *to)
{
    const size_t n = strlen(to);
    return (n > 0 && to[n - 1] == '/') || (pare_is_dir(from) && !cli_has_ending(to));
}

void reduce_choose_form(cli *c, reduction *r, bool file)
{
    const bool slash = *c->out && c->out[strlen(c->out) - 1] == '/';
    r->o.folder = reduce_names_folder(c->operand[0], c->out) && (slash || !file);
    if (r->o.folder) c->out = cli_folder_name(c, c->out);
}

pare_status reduce_may_write_folder(cli *c, const reduction *r)
{
    const char *const from = c->operand[0];
    if (!pare_is_dir(from))
        return cli_usage_error(c,
                               "-o %s: a folder is written of a folder, and %s is a file; give "
                               "-o the name of a file",
                               c->out, from);
    if (r->any_shape)
        return cli_usage_error(c,
                               "-o %s: with --any-shape the result is a pare file, because no "
                               "config can express it; give -o the name of a file",
                               c->out);
    return cli_may_write_folder(c, c->out, (const char *const[]){from, r->o.data, r->o.heldout}, 3);
}

pare_status reduce_any_shape_applies(cli *c, const reduction *r)
{
    if (!r->any_shape) return PARE_OK;
    const pare_status st =
        cli_only(c, "any-shape", pare_is_dir(r->o.from), "a Hugging Face folder");
    if (!st)
        cli_note(c,
                 "--any-shape: %s becomes a pare file, because the cut may leave shapes that no "
                 "config can express",
                 c->out);
    return st;
}

/* Where everything goes, and whether it may be written there. */
static pare_status check_out(cli *c, reduction *r, const char *cert_path)
{
    const char *const from = c->operand[0];
    pare_status st = cli_is_there(c, from);
    if (!st) st = cli_is_there(c, r->o.data);
    if (st) return st;
    if (r->o.folder) return reduce_may_write_folder(c, r);
    st = cli_may_write(c, c->out, from);
    if (!st) st = cli_may_write(c, c->out, r->o.data);
    if (!st) st = cli_may_write(c, cert_path, NULL);
    if (!st) st = cli_may_write(c, r->run_path, NULL);
    return st;
}

pare_status reduce_run(cli *c, reduction *r, const reduce_steps *s, void *self)
{
    /* A ticket is a file, and so is a quantized model, unless the name is that of a folder: then it is refused. */
    reduce_choose_form(
        c, r, r->any_shape || r->o.kind == PARE_REDUCE_TICKET || r->o.kind == PARE_REDUCE_QUANT);
    const char *const cert_path =
        cli_suffixed(c, c->out, r->o.folder ? "/pare.cert.json" : ".cert.json");
    pare_model *m = NULL;
    pare_files *files = NULL;
    r->c = c;
    r->o.from = c->operand[0];
    r->o.to = c->out;
    r->o.overwrite = c->force;
    r->o.seed = c->seed;
    r->o.dtype = dtype_of(r->dtype);
    r->o.started = pare_seconds();
    r->o.event = reduce_on_event;
    r->o.self = r;
    pare_status st = cert_path ? reduce_paths(r, cert_path) : PARE_ERR_MEMORY;
    if (!st) st = check_out(c, r, cert_path);
    if (!st && s->check_options) st = s->check_options(c, self);
    if (!st && !(files = pare_files_new())) st = pare_no_memory(&c->err);
    r->o.files = files;
    if (!st) st = cli_load_files(c, &m, r->o.from, files);
    if (!st) st = reduce_any_shape_applies(c, r);
    if (!st) st = s->check_model(c, self, m);
    if (!st) st = reduce_reword(c, pare_reduce(&r->r, c->arena, m, &r->o, &c->whole, &c->err));
    if (!st && r->r.no_metric) cli_note(c, "quality is not measured: %s", r->r.no_metric);
    if (!st && r->o.kind == PARE_REDUCE_FOLD) note_larger(c, &r->r.before, &r->r.after);
    if (!st) st = reduce_write_run_file(r);
    cli_bar_end(c);
    if (!st && c->json)
        st = s->print_json(c, self);
    else if (!st)
        s->print_text(c, self);
    pare_model_free(m);
    pare_files_free(files);
    return st;
}

int reduce_command(const opt_spec *spec, int argc, char **argv, reduction *r, const reduce_steps *s,
                   void *self)
{
    cli c;
    int rc;
    if (!cli_start(&c, spec, CLI_MUST_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    return cli_finish(&c, reduce_run(&c, r, s, self));
}

pare_status reduce_split_applies(cli *c, void *self, const pare_model *m)
{
    (void)self;
    return cli_only(c, "split", !m->embedding.ids, "graphs, and this model takes tokens");
}

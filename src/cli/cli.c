/* cli.c - how every command begins and ends: options, progress, errors, files (cli.h). */
#include "cli.h"
#include "interrupt.h"
#include "out.h"
#include "suggest.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows that all commands have; those of -o and --seed where they mean something. */
static size_t common_rows(cli *c, cli_out out, const char *out_help)
{
    size_t n = 0;
    opt *o = c->common;
    /* clang-format off */
    if (out != CLI_NO_OUT) {
        o[n++] = (opt){.name = "out", .letter = 'o', .kind = OPT_TEXT, .to = &c->out, .metavar = "FILE",
                       .group = "Output", .required = out == CLI_MUST_OUT, .help = out_help};
        o[n++] = (opt){.name = "force", .letter = 'f', .kind = OPT_FLAG, .to = &c->force,
                       .help = "replace files that exist"};
    }
    const char *const group = n > 0 ? NULL : "Output";
    o[n++] = (opt){.name = "json", .kind = OPT_FLAG, .to = &c->json, .group = group,
                   .help = "print one JSON object instead of text, also for errors"};
    o[n++] = (opt){.name = "quiet", .letter = 'q', .kind = OPT_FLAG, .to = &c->quiet,
                   .help = "no progress bar and no notes on stderr"};
    o[n++] = (opt){.name = "verbose", .letter = 'v', .kind = OPT_FLAG, .to = &c->verbose,
                   .help = "print more details"};
    o[n++] = (opt){.name = "threads", .letter = 't', .kind = OPT_SIZE, .to = &c->threads, .metavar = "N",
                   .group = "Running", .min = 1, .max = CLI_MAX_THREADS, .unset = "all cores",
                   .help = "number of threads; results do not depend on it"};
    if (c->spec.seeded)
        o[n++] = (opt){.name = "seed", .kind = OPT_SEED, .to = &c->seed, .metavar = "S",
                       .help = "seed of all random numbers; same seed, same result"};
    if (c->spec.operands && c->spec.operands[0] && strcmp(c->spec.operands[0], "MODEL") == 0) {
        o[n++] = (opt){.name = "pool", .kind = OPT_CHOICE, .to = &c->pool, .metavar = "W", .choices = pare_pool_names, .rare = true,
                       .group = "Sentence encoders", .unset = "as the folder says",
                       .help = "pool the rows of a Hugging Face model in the place of its own head"};
        o[n++] = (opt){.name = "normalize", .kind = OPT_FLAG, .to = &c->normalize, .rare = true,
                       .help = "divide pooled outputs by their length"};
    }
    /* clang-format on */
    return n;
}

/* As a shell would have to be told again, on one line: control characters become spaces. */
static char *quoted(pare_arena *a, const char *word)
{
    if (*word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "-_=+,.:/@%") == strlen(word))
        return pare_strdup(a, word);
    char *out = pare_alloc(a, 4 * strlen(word) + 3, 1), *at = out;
    if (!out) return NULL;
    *at++ = '\'';
    for (; *word; word++) {
        for (const char *end = "'\\'"; *word == '\'' && *end; end++) *at++ = *end;
        *at++ = (unsigned char)*word < 0x20 || *word == 0x7F ? ' ' : *word;
    }
    *at++ = '\'';
    *at = 0;
    return out;
}

/* --json among the words of a command line that could not be parsed. */
static bool asks_json(int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0) return true;
    return false;
}

bool cli_start(cli *c, const opt_spec *spec, cli_out out, const char *out_help, int argc,
               char **argv, int *rc)
{
    *c = (cli){.spec = *spec, .threads = (size_t)pare_cores()};
    c->spec.ncommon = common_rows(c, out, out_help);
    c->spec.common = c->common;
    c->arena = pare_arena_new();
    c->line = c->arena ? pare_sprintf(c->arena, "pare %s", spec->command) : NULL;
    for (int i = 0; i < argc && c->line; i++) {
        const char *const word = quoted(c->arena, argv[i]);
        c->line = word ? pare_sprintf(c->arena, "%s %s", c->line, word) : NULL;
    }
    if (!c->line) {
        *rc = cli_finish(c, pare_no_memory(&c->err));
        return false;
    }
    const opt_result r = opt_parse(&c->spec, argc, argv, &c->words);
    c->noperands = c->words.noperands;
    if (r == OPT_BAD) {
        c->json = asks_json(argc, argv);
        *rc = cli_finish(c, cli_usage_error(c, "%s", c->words.message));
        return false;
    }
    *rc = 0;
    if (r == OPT_DONE) {
        pare_arena_free(c->arena);
        return false;
    }
    c->operand = argv;
    if (c->out) interrupt_cleans(c->out);
    interrupt_watch();
    pare_bar_init(&c->bar, stderr);
    c->whole = (pare_exec){.threads = (int)c->threads, .stop = &interrupt_flag};
    if (!c->quiet && c->bar.tty) {
        c->whole.progress = pare_bar_show;
        c->whole.self = &c->bar;
    }
    c->exec = c->whole;
    return true;
}

/* ---- progress ------------------------------------------------------------------------------- */

void cli_phase(cli *c, const char *what, double share)
{
    if (!c->steps.whole) c->steps = pare_steps_of(&c->whole, 100);
    c->exec = *pare_step(&c->steps, what, share);
}

void cli_bar_end(cli *c)
{
    if (!c->bar.drawn) return;
    if (!interrupt_flag) pare_bar_show(&c->bar, "done", 1, 1);
    pare_bar_clear(&c->bar);
}

/* ---- how it ends ---------------------------------------------------------------------------- */

/* {"command", "error": {"exit", "kind", "message"}} on stdout. */
static void json_error(const char *command, pare_status st, const char *message)
{
    static const char *const words[] = {
        [PARE_ERR_USAGE] = "usage",
        [PARE_ERR_INPUT] = "input",
        [PARE_ERR_IO] = "io",
        [PARE_ERR_MEMORY] = "memory",
        [PARE_ERR_NONFINITE] = "nonfinite",
        [PARE_ERR_NUMERIC] = "numeric",
        [PARE_ERR_PROMISE] = "promise",
        [PARE_ERR_VERIFY] = "verify",
        [PARE_ERR_STOPPED] = "stopped",
    };
    const char *const word = st < sizeof words / sizeof *words ? words[st] : NULL;
    cJSON *const root = cJSON_CreateObject();
    if (pare_json_add_values(root, "command:s", command) &&
        pare_json_add_record(root, "error", "exit:z kind:s message:s", (size_t)pare_exit_code(st),
                             word ? word : "other", message))
        out_json_object(root);
    cJSON_Delete(root);
}

int cli_finish(cli *c, pare_status st)
{
    const char *const command = c->spec.command;
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    st = pare_or_stopped(&c->whole, st, &c->err);
    if (st == PARE_ERR_STOPPED)
        (void)pare_fail(&c->err, st, "%s",
                        c->stopped ? c->stopped
                        : c->out   ? "stopped; nothing was written"
                                   : "stopped");
    const char *const why = st ? cli_option_words(c, c->err.msg) : NULL;
    if (st) out_error("pare %s: %s", command, why);
    if (st == PARE_ERR_USAGE)
        fprintf(stderr, "usage: pare %s %s    (more: pare %s --help)\n", command, c->spec.args,
                command);
    if (st && c->json && !c->json_printed) json_error(command, st, why);
    pare_arena_free(c->arena);
    return pare_exit_code(st);
}

int cli_command(const opt_spec *spec, cli_out out, const char *out_help, int argc, char **argv,
                pare_status (*run)(cli *c, void *self), void *self)
{
    cli c;
    int rc;
    if (!cli_start(&c, spec, out, out_help, argc, argv, &rc)) return rc;
    return cli_finish(&c, run(&c, self));
}

/* Why a word is not in the list, with the nearest one or all of them; word NULL: it is missing. */
static void unknown_word_message(char *buf, size_t size, const char *what, const char *word,
                                 const char *const *words)
{
    char list[400];
    const char *const near = word ? suggest_word(word, words) : NULL;
    opt_list(list, sizeof list, words);
    if (!word)
        snprintf(buf, size, "%s is missing; choose one of %s", what, list);
    else if (near)
        snprintf(buf, size, "unknown %s '%s'; did you mean '%s'?", what, word, near);
    else
        snprintf(buf, size, "unknown %s '%s'; choose one of %s", what, word, list);
}

int cli_unknown_word(const char *command, const char *what, const char *word,
                     const char *const *words, int argc, char *const *argv)
{
    char message[600];
    unknown_word_message(message, sizeof message, what, word, words);
    out_error("pare%s%s: %s", *command ? " " : "", command, message);
    fprintf(stderr, "help: pare %s%s--help\n", command, *command ? " " : "");
    if (asks_json(argc, argv)) json_error(command, PARE_ERR_USAGE, message);
    return pare_exit_code(PARE_ERR_USAGE);
}

pare_status cli_usage_error(cli *c, const char *fmt, ...)
{
    char message[sizeof c->err.msg];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return pare_fail(&c->err, PARE_ERR_USAGE, "%s", message);
}

bool cli_given(const cli *c, const char *name)
{
    return opt_given(&c->spec, &c->words, name);
}

pare_status cli_only(cli *c, const char *names, bool applies, const char *with)
{
    while (!applies && *names) {
        const size_t n = strcspn(names, ",");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        if (cli_given(c, name))
            return cli_usage_error(c, "--%s has no effect here: it goes with %s", name, with);
        names += n + (names[n] == ',');
    }
    return PARE_OK;
}

pare_status cli_check_rules(cli *c, const cli_rule *rules)
{
    pare_status st = PARE_OK;
    for (; !st && rules->names; rules++)
        st = cli_only(c, rules->names, rules->applies, rules->with);
    return st;
}

pare_status cli_choose(cli *c, size_t *index, const char *what, const char *word,
                       const char *const *words)
{
    char message[600];
    for (*index = 0; words[*index]; ++*index)
        if (strcmp(word, words[*index]) == 0) return PARE_OK;
    unknown_word_message(message, sizeof message, what, word, words);
    return cli_usage_error(c, "%s", message);
}

/* One rank speaks for all, and before the others leave: an mpirun ends all when one has failed. */
int cli_ranked(cli *c, pare_status (*run)(cli *c, void *self, pare_ranks *ranks), void *self)
{
    pare_ranks *ranks = NULL;
    bool mpirun = false;
    for (size_t i = 0; pare_ranks_signs[i]; i++) mpirun |= getenv(pare_ranks_signs[i]) != NULL;
    pare_status st = mpirun ? pare_ranks_open(&ranks, &c->err) : PARE_OK;
    /* Ranks wait for one another: none may leave by itself. */
    if (pare_ranks_size(ranks) > 1) interrupt_at_once();
    if (!st) st = run(c, self, ranks);
    int rc = pare_exit_code(st);
    if (pare_ranks_rank(ranks) == 0)
        rc = cli_finish(c, st);
    else
        pare_arena_free(c->arena);
    pare_ranks_close(ranks);
    return rc;
}

void cli_note(cli *c, const char *fmt, ...)
{
    if (c->quiet) return;
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "pare %s: ", c->spec.command);
    out_escaped(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

pare_status cli_name(cli *c, pare_status st, const char *path)
{
    return pare_err_path(&c->err, st, path);
}

const char *cli_replaced(cli *c, const char *text, const char *words, const char *option)
{
    const char *const at = strstr(text, words);
    const char *const new =
        at ? pare_sprintf(c->arena, "%.*s%s%s", (int)(at - text), text, option, at + strlen(words))
           : NULL;
    return new ? new : text;
}

const char *cli_option_words(cli *c, const char *text)
{
    static const char *const words[][2] = {
        {"pooled otherwise (pool, normalize)", "pooled otherwise (--pool mean --normalize)"},
        {"normalize needs pool:", "--normalize needs --pool:"},
        {"pool and normalize are for", "--pool and --normalize are for"},
        {"exists, and may not be overwritten", "exists; use -f to overwrite"},
        {"s (timeout): ", "s (--timeout): "},
        {"the certificate of a run bounds its rounding",
         "`pare length --certify` bounds the rounding of a run"},
        {"; dims says which to try", "; --dims says which to try"},
        {"depend on data, and none were given", "depend on data (--data)"},
        {"depend on the graph, and none was given", "depend on the graph (--data)"},
        {"(a larger depth_macs tries it)", "(--all tries it)"},
        {"was not tried (no_cuts is set)", "was not tried (--no-cuts)"},
        {"name one of them with column", "name one of them with --column"},
        {"column: only", "--column: only"},
        {"import it again with a vocabulary", "import it again with --vocab"},
        {"distance from those of a reference model",
         "distance from those of another model (--reference MODEL)"},
        {"; mode factored can do it", "; --mode factored can do it"},
        {"fewer rows in the claim make", "fewer rows (--edit-rows) make"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        text = cli_replaced(c, text, words[i][0], words[i][1]);
    return text;
}

pare_status cli_reword(cli *c, pare_status st, const char *words, const char *option)
{
    if (!st || !strstr(c->err.msg, words)) return st;
    return pare_fail(&c->err, st, "%s", cli_replaced(c, c->err.msg, words, option));
}

char *cli_suffixed(cli *c, const char *path, const char *suffix)
{
    char *s = pare_sprintf(c->arena, "%s%s", path, suffix);
    if (!s) (void)pare_no_memory(&c->err);
    return s;
}

char *cli_fresh(cli *c, const char *path)
{
    char *s = pare_sprintf(c->arena, "%s" PARE_PART_SUFFIX, path, (long)getpid());
    if (!s) (void)pare_no_memory(&c->err);
    return s;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Files are written beside their place and moved there: the folder must let us. */
static pare_status folder_check(cli *c, const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const folder = !slash ? "."
                               : slash == path
                                   ? "/"
                                   : pare_strndup(c->arena, path, (size_t)(slash - path));
    if (!folder) return pare_no_memory(&c->err);
    if (!pare_is_dir(folder))
        return pare_fail(&c->err, PARE_ERR_IO, "%s: there is no folder %s", path, folder);
    if (access(folder, W_OK | X_OK) == 0) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_IO, "%s: cannot write into the folder %s: %s", path, folder,
                     strerror(errno));
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

pare_status cli_is_there(cli *c, const char *path)
{
    struct stat info;
    size_t texts;
    if (!path || stat(path, &info) == 0 || pare_data_is_self(path, &texts)) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
}

pare_status cli_may_write(cli *c, const char *path, const char *input)
{
    struct stat out;
    pare_status st = cli_is_there(c, input); /* the more useful message comes first */
    if (st) return st;
    if (strcmp(path, "-") == 0)
        return cli_usage_error(c, "-o -: this result goes to a file, not to stdout");
    if (stat(path, &out) == 0) {
        if (input && cli_same_file(input, path))
            return cli_usage_error(c, "-o %s is the input %s itself", path, input);
        st = pare_out_check(path, c->force, &c->err);
    } else if (errno != ENOENT) {
        st = pare_fail(&c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (!st) st = folder_check(c, path);
    if (st) return st;
    const size_t left = pare_out_sweep_begun(path);
    if (left > 0 && c->verbose)
        cli_note(c, "%zu temporary %s of %s removed, left by a process that was killed", left,
                 left == 1 ? "file" : "files", path);
    return PARE_OK;
}

bool cli_has_ending(const char *path)
{
    size_t n = strlen(path), dot;
    while (n > 1 && path[n - 1] == '/') n--;
    for (dot = n; dot > 0 && path[dot - 1] != '/' && path[dot - 1] != '.'; dot--) {}
    const bool inside = dot > 1 && path[dot - 1] == '.' && path[dot - 2] != '/';
    return inside && dot < n && isalpha((unsigned char)path[dot]);
}

const char *cli_folder_name(cli *c, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    const char *const name = pare_strndup(c->arena, path, n);
    if (!name) (void)pare_no_memory(&c->err);
    return name;
}

/* Whether `path` is `folder` or lies in it, links resolved. */
static bool lies_in(const char *path, const char *folder)
{
    char *const a = realpath(path, NULL), *const b = realpath(folder, NULL);
    const size_t n = b ? strlen(b) : 0;
    const bool in = a && b && strncmp(a, b, n) == 0 && (a[n] == '/' || a[n] == '\0');
    free(a);
    free(b);
    return in;
}

pare_status cli_may_write_folder(cli *c, const char *path, const char *const *inputs, size_t n)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) st = cli_is_there(c, inputs[i]);
    if (!st && strcmp(path, "-") == 0)
        st = cli_usage_error(c, "-o -: this result goes to a folder, not to stdout");
    for (size_t i = 0; i < n && !st; i++)
        if (inputs[i] && cli_same_file(inputs[i], path))
            st = cli_usage_error(c, "-o %s is the input %s itself", path, inputs[i]);
        else if (inputs[i] && lies_in(inputs[i], path))
            st = cli_usage_error(c, "-o %s: the input %s lies in it", path, inputs[i]);
    if (!st) st = pare_folder_check(path, c->force, &c->err);
    if (!st) st = folder_check(c, path);
    return st;
}

pare_status cli_check_files(cli *c, const char *const *inputs, size_t n)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) st = cli_is_there(c, inputs[i]);
    for (size_t i = 0; i < n && c->out && !st; i++) st = cli_may_write(c, c->out, inputs[i]);
    return st;
}

pare_status cli_load_files(cli *c, pare_model **out, const char *path, pare_files *files)
{
    const pare_load_opts told = {
        .pool = (pare_pool)c->pool, .normalize = c->normalize, .packed = c->packed};
    const pare_status st = cli_name(c, pare_model_load_as(out, path, &told, files, &c->err), path);
    for (const char *s = st ? NULL : (*out)->notes; s && *s;) {
        const size_t n = strcspn(s, "\n");
        const char *const line = pare_sprintf(c->arena, "%.*s", (int)n, s);
        if (line) cli_note(c, "%s", cli_option_words(c, line));
        s += n + (s[n] == '\n');
    }
    return st;
}

pare_status cli_load(cli *c, pare_model **out, const char *path)
{
    *out = NULL;
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return pare_no_memory(&c->err);
    const pare_status st = cli_load_files(c, out, path, files);
    pare_files_free(files);
    return st;
}

/* ---- the engine ------------------------------------------------------------------------------ */

const char *const cli_engine_words[] = {"f32", "int8", NULL};
const char *const cli_engine_help[] = {
    "single precision",
    "matrices of packed integers (pare quant) are multiplied with integers of 8 bits, to which "
    "what enters them is rounded; all else in single precision",
    NULL};

static pare_status find_integers(void *self, const char *name, pare_weight *w, bool vector,
                                 pare_err *err)
{
    (void)name, (void)vector, (void)err;
    if (w->dtype == PARE_U8) *(bool *)self |= ((const pare_packed_weight *)w->data)->integers;
    return PARE_OK;
}

pare_status cli_engine(cli *c, size_t engine, const pare_model *m)
{
    bool integers = false;
    if (engine != CLI_ENGINE_INT8) return PARE_OK;
    /* Looking at weights does not change them. */
    const pare_status st =
        pare_model_each_weight((pare_model *)m, find_integers, &integers, &c->err);
    if (st) return st;
    if (!integers)
        return pare_fail(
            &c->err, PARE_ERR_INPUT,
            "--engine int8: %s has no packed integers; `pare quant MODEL -o OUT` makes "
            "such a model",
            c->operand[0]);
    c->whole.int8 = c->steps.exec.int8 = c->exec.int8 = true;
    return PARE_OK;
}

/* ---- facts --------------------------------------------------------------------------------- */

pare_status cli_facts(cli *c, facts *out, const char *path, const pare_model *m,
                      const pare_input *in, bool hash)
{
    const pare_status st = pare_model_facts_of(out, path, m, in, c->arena, &c->err);
    if (st || !hash || pare_is_dir(path)) return st;
    return pare_sha256_file(out->sha256, path, &c->err);
}

int cli_end(int rc)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "pare: standard output: %s\n", strerror(errno));
        return rc ? rc : pare_exit_code(PARE_ERR_IO);
    }
    if (rc == pare_exit_code(PARE_ERR_STOPPED)) interrupt_end();
    return rc;
}

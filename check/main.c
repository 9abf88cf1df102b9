/* main.c - the command: options, one job for each certificate, and what is printed of it. */
#include "check.h"

#include <getopt.h>
#include <signal.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { USAGE = 1, DEFAULT_TRIES = 20, MOST_THREADS = 4096 };

static const char help[] =
    "Usage: pare-check CERT... [options]\n"
    "A second opinion on certificates of pare, by a program that shares no code with it and\n"
    "evaluates both models in ball arithmetic. Every statement is confirmed (proven here again),\n"
    "REFUTED (by a counterexample, in balls), not refuted (tries did not) or not checked (the\n"
    "line says why).\n\n"
    "  --unpacked DIR  use what `pare verify CERT --unpack DIR` wrote, where a model is a folder\n"
    "                  or a ticket, or the data are texts\n"
    "  --input FILE, --output FILE, --data FILE\n"
    "                  where the files of the certificate are now\n"
    "  --inputs K      evaluate K of the inputs, drawn by the seed [all]\n"
    "  --tries N       inputs that are tried for a theorem about a whole domain [20]\n"
    "  --seed S        of these draws [0]\n"
    "  -t, --threads N [all processors]\n"
    "  --json          one JSON object for each certificate\n"
    "  -q, --quiet     only what is refuted, and the verdict\n"
    "  -h, --help      this text\n\n"
    "Exit code: 0 nothing is refuted; 4 something is; 2 a file cannot be read; 1 wrong usage.\n"
    "Example: pare verify cut.cert.json --unpack plain\n"
    "         pare-check cut.cert.json --unpacked plain\n";

/* FLINT and GMP cannot report that memory is out: they end in abort(). */
static _Noreturn void out_of_memory(int signal)
{
    static const char text[] = "pare-check: out of memory\n";
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(UNREADABLE);
    _exit(UNREADABLE);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Texts of a certificate may hold anything: control characters are shown as '?'. */
static void print(FILE *to, const char *before, const char *text, const char *after)
{
    fputs(before, to);
    for (const char *p = text; *p; p++) fputc((unsigned char)*p < 32 || *p == 127 ? '?' : *p, to);
    fputs(after, to);
}

static const struct {
    const char *line, *key;
} verdicts[VERDICTS] = {{"confirmed    ", "confirmed"},
                        {"REFUTED      ", "refuted"},
                        {"not refuted  ", "not_refuted"},
                        {"not checked  ", "not_checked"}};

static void print_lines(const job *j, const char *path, int code, bool quiet)
{
    for (const statement *s = j->first; s; s = s->next) {
        if (quiet && s->verdict != REFUTED) continue;
        print(stdout, verdicts[s->verdict].line, s->what, " - ");
        print(stdout, "", s->why, "\n");
    }
    print(stdout, "verdict      ", path, ": ");
    printf("%s; %zu confirmed, %zu refuted, %zu not refuted, %zu not checked\n",
           code == 0          ? "nothing is refuted"
           : code == NOT_TRUE ? "REFUTED"
                              : "cannot be checked",
           count_of(j, CONFIRMED), count_of(j, REFUTED), count_of(j, NOT_REFUTED),
           count_of(j, NOT_CHECKED));
}

static void print_json(const job *j, const char *path, int code)
{
    cJSON *const o = cJSON_CreateObject(), *const list = cJSON_AddArrayToObject(o, "statements");
    cJSON_AddStringToObject(o, "certificate", path);
    cJSON_AddNumberToObject(o, "exit", code);
    cJSON_AddStringToObject(o, "trouble", j->trouble);
    for (verdict v = 0; v < VERDICTS; v++)
        cJSON_AddNumberToObject(o, verdicts[v].key, (double)count_of(j, v));
    for (const statement *s = j->first; s; s = s->next) {
        cJSON *const line = cJSON_CreateObject();
        cJSON_AddStringToObject(line, "verdict", verdicts[s->verdict].key);
        cJSON_AddStringToObject(line, "what", s->what);
        cJSON_AddStringToObject(line, "why", s->why);
        cJSON_AddItemToArray(list, line);
    }
    char *const text = cJSON_Print(o);
    if (text)
        puts(text);
    else
        out_of_memory(0);
    cJSON_free(text);
    cJSON_Delete(o);
}

static int check_file(const char *path, const options *o, bool json, bool quiet)
{
    job j = {.o = o, .started = time(NULL)};
    check_certificate(&j, path);
    const int code = count_of(&j, REFUTED) > 0 ? NOT_TRUE : j.code;
    if (o->progress) fputs("\r\033[K", stderr);
    if (json)
        print_json(&j, path, code);
    else
        print_lines(&j, path, code, quiet);
    fflush(stdout);
    if (j.code) print(stderr, "pare-check: ", j.trouble, "\n");
    end_job(&j);
    return code;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool read_size(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

int main(int argc, char **argv)
{
    enum { TEXT = 256, NUMBER = 260, THREADS = 263, JSON };
    static const struct option list[] = {
        {"unpacked", 1, NULL, TEXT},   {"input", 1, NULL, TEXT + 1}, {"output", 1, NULL, TEXT + 2},
        {"data", 1, NULL, TEXT + 3},   {"inputs", 1, NULL, NUMBER},  {"tries", 1, NULL, NUMBER + 1},
        {"seed", 1, NULL, NUMBER + 2}, {"threads", 1, NULL, 't'},    {"json", 0, NULL, JSON},
        {"quiet", 0, NULL, 'q'},       {"help", 0, NULL, 'h'},       {0}};
    options o = {.tries = DEFAULT_TRIES, .most_work = INFINITY, .most_balls = (size_t)1 << 28};
    bool json = false, quiet = false;
    uint64_t threads = 0;
    int c, worst = 0, started = 0;
    const char **const texts[] = {&o.unpacked, &o.moved[0], &o.moved[1], &o.moved[2]};
    uint64_t *const numbers[] = {&o.inputs, &o.tries, &o.seed, &threads};
    signal(SIGABRT, out_of_memory);
    while ((c = getopt_long(argc, argv, "t:qh", list, NULL)) != -1) {
        if (c == '?') return USAGE;
        if (c == 'h') return fputs(help, stdout), 0;
        if (c == 'q') quiet = true;
        if (c == JSON) json = true;
        if (c >= TEXT && c < NUMBER) *texts[c - TEXT] = optarg;
        if (c == 't') c = THREADS;
        if (c >= NUMBER && c <= THREADS && !read_size(optarg, numbers[c - NUMBER])) {
            fprintf(stderr, "pare-check: '%s' is not a whole number\n", optarg);
            return USAGE;
        }
    }
    if (optind == argc || threads > MOST_THREADS) {
        fputs("pare-check: a certificate is needed; see pare-check --help\n", stderr);
        return USAGE;
    }
#ifdef _OPENMP
    if (threads) omp_set_num_threads((int)threads);
#endif
#pragma omp parallel
#pragma omp atomic
    started++; /* threads: now, while there is memory */
    o.progress = started > 0 && isatty(STDERR_FILENO) && !quiet;
    for (int i = optind; i < argc; i++) {
        const int code = check_file(argv[i], &o, json, quiet);
        if (code > worst) worst = code;
    }
#pragma omp parallel
    flint_cleanup();
    return worst;
}

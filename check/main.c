/* main.c - the command: options, one job for each certificate, and what is printed of it. */
#include "check.h"

#include <getopt.h>
#include <gmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { USAGE = 1, DEFAULT_TRIES = 20 };

static const char help[] =
    "Usage: pare-check CERT... [options]\n"
    "\n"
    "A second opinion on certificates of pare, by a program that shares no code with it. Both\n"
    "models are evaluated in ball arithmetic; every statement of a certificate is\n"
    "\n"
    "  confirmed    true: proven here again, in another arithmetic\n"
    "  REFUTED      false: a counterexample was found, in balls\n"
    "  not refuted  about more inputs than can be evaluated; tries did not refute it\n"
    "  not checked  not this program's to say; the line says why\n"
    "\n"
    "Options\n"
    "  --unpacked DIR  use what `pare verify CERT --unpack DIR` wrote, for models that are "
    "folders\n"
    "                  or tickets and data that are texts\n"
    "  --input FILE, --output FILE, --data FILE\n"
    "                  where the files of the certificate are now\n"
    "  --inputs K      evaluate K of the inputs, drawn by the seed [all]\n"
    "  --tries N       inputs that are tried for a theorem about a whole domain [20]\n"
    "  --seed S        of these draws [0]\n"
    "  -t, --threads N [all processors]\n"
    "  --json          one JSON object for each certificate\n"
    "  -q, --quiet     only what is refuted, and the verdict\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit code: 0 nothing is refuted; 4 something is; 2 a file cannot be read; 1 wrong usage.\n"
    "\n"
    "Examples\n"
    "  pare-check small.safetensors.cert.json\n"
    "  pare verify cut.cert.json --unpack plain && pare-check cut.cert.json --unpacked plain\n";

typedef struct printing {
    bool json, quiet;
} printing;

/* ---- memory of FLINT and GMP: they cannot report that it is out ------------------------------ */

static void out_of_memory(void) __attribute__((noreturn));
static void out_of_memory(void)
{
    static const char text[] = "pare-check: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(UNREADABLE);
    _exit(UNREADABLE);
}

static void *calloc_or_end(size_t n, size_t size)
{
    void *const p = calloc(n ? n : 1, size ? size : 1);
    if (!p) out_of_memory();
    return p;
}

static void *realloc_or_end(void *old, size_t n)
{
    void *const p = realloc(old, n ? n : 1);
    if (!p) out_of_memory();
    return p;
}

static void *alloc_or_end(size_t n)
{
    return realloc_or_end(NULL, n);
}

static void *gmp_realloc(void *old, size_t before, size_t n)
{
    (void)before;
    return realloc_or_end(old, n);
}

static void gmp_free(void *p, size_t n)
{
    (void)n;
    free(p);
}

static void set_memory_functions(void)
{
    mp_set_memory_functions(alloc_or_end, gmp_realloc, gmp_free);
    __flint_set_memory_functions(alloc_or_end, calloc_or_end, realloc_or_end, free);
    flint_set_abort(out_of_memory);
}

/* ---- progress -------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void show_progress(job *j, double work)
{
    if (j->main) j = j->main;
#pragma omp atomic
    j->work_done += work;
    if (!j->o->progress || !(j->work_all > 0)) return;
    const double share = fmin(1, j->work_done / j->work_all), spent = seconds() - j->started;
    if (spent < 1) return;
    const double left = share > 0 ? spent * (1 - share) / share : 0;
    fprintf(stderr, "\r%3.0f %%, about %.0f s left \033[K", 100 * share, left);
    fflush(stderr);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Texts of a certificate may hold anything: control characters are shown as '?'. */
static void print_text(const char *text)
{
    for (const char *p = text; *p; p++) putchar((unsigned char)*p < 32 || *p == 127 ? '?' : *p);
}

static int verdict_of(const job *j)
{
    if (j->report.count[REFUTED] > 0 || j->t.code == NOT_TRUE) return NOT_TRUE;
    return j->t.code;
}

static void print_lines(const job *j, const char *path, printing p)
{
    const report *const r = &j->report;
    for (size_t i = 0; i < r->n; i++) {
        const statement *const s = &r->list[i];
        if (p.quiet && s->verdict != REFUTED) continue;
        printf("%-12s ", verdict_words[s->verdict]);
        print_text(s->what);
        fputs(" - ", stdout);
        print_text(s->why);
        putchar('\n');
    }
    const int code = verdict_of(j);
    printf("%-12s ", "verdict");
    print_text(path);
    printf(": %s; %zu confirmed, %zu refuted, %zu not refuted, %zu not checked\n",
           code == 0          ? "nothing is refuted"
           : code == NOT_TRUE ? "REFUTED"
                              : "cannot be checked",
           r->count[CONFIRMED], r->count[REFUTED], r->count[NOT_REFUTED], r->count[NOT_CHECKED]);
}

static bool print_json(const job *j, const char *path)
{
    static const char *const keys[VERDICTS] = {"confirmed", "refuted", "not_refuted",
                                               "not_checked"};
    const report *const r = &j->report;
    cJSON *const o = cJSON_CreateObject();
    cJSON *const list = o ? cJSON_AddArrayToObject(o, "statements") : NULL;
    bool good = list && cJSON_AddStringToObject(o, "certificate", path) &&
                cJSON_AddNumberToObject(o, "exit", verdict_of(j)) &&
                cJSON_AddStringToObject(o, "trouble", j->t.text);
    for (verdict v = 0; good && v < VERDICTS; v++)
        good = cJSON_AddNumberToObject(o, keys[v], (double)r->count[v]) != NULL;
    for (size_t i = 0; good && i < r->n; i++) {
        cJSON *const s = cJSON_CreateObject();
        good = s && cJSON_AddItemToArray(list, s) &&
               cJSON_AddStringToObject(s, "verdict", keys[r->list[i].verdict]) &&
               cJSON_AddStringToObject(s, "what", r->list[i].what) &&
               cJSON_AddStringToObject(s, "why", r->list[i].why);
    }
    char *const text = good ? cJSON_Print(o) : NULL;
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(o);
    return text != NULL;
}

/* ---- one certificate ------------------------------------------------------------------------- */

static int check_file(const char *path, const options *o, printing p)
{
    job j = {.o = o, .started = seconds()};
    bytes text;
    const char *const slash = strrchr(path, '/');
    const char *const folder =
        slash ? words(&j, "%.*s", (int)(slash - path) + (slash == path), path) : "";
    if (read_file(&j, path, &text)) check_certificate(&j, path, folder, text.v, text.n);
    if (o->progress) fputs("\r\033[K", stderr);
    int code = verdict_of(&j);
    if (p.json && !print_json(&j, path)) code = UNREADABLE;
    if (!p.json) print_lines(&j, path, p);
    fflush(stdout);
    if (j.t.code) {
        fputs("pare-check: ", stderr);
        for (const char *c = j.t.text; *c; c++) fputc((unsigned char)*c < 32 ? '?' : *c, stderr);
        fputc('\n', stderr);
    }
    give_back(&j);
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
    enum { UNPACKED = 256, INPUT, OUTPUT, DATA, INPUTS, TRIES, SEED, JSON };
    static const struct option list[] = {
        {"unpacked", 1, NULL, UNPACKED}, {"input", 1, NULL, INPUT},   {"output", 1, NULL, OUTPUT},
        {"data", 1, NULL, DATA},         {"inputs", 1, NULL, INPUTS}, {"tries", 1, NULL, TRIES},
        {"seed", 1, NULL, SEED},         {"json", 0, NULL, JSON},     {"threads", 1, NULL, 't'},
        {"quiet", 0, NULL, 'q'},         {"help", 0, NULL, 'h'},      {0}};
    options o = {.tries = DEFAULT_TRIES, .most_work = INFINITY, .most_balls = (size_t)1 << 28};
    printing p = {0};
    uint64_t threads = 0, n = 0;
    int c;
    set_memory_functions();
    while ((c = getopt_long(argc, argv, "t:qh", list, NULL)) != -1) {
        const bool number = c == INPUTS || c == TRIES || c == SEED || c == 't';
        if (c == '?') return USAGE;
        if (c == 'h') return fputs(help, stdout), 0;
        if (number && !read_size(optarg, &n)) {
            fprintf(stderr, "pare-check: '%s' is not a whole number\n", optarg);
            return USAGE;
        }
        if (c == UNPACKED) o.unpacked = optarg;
        if (c == INPUT) o.input = optarg;
        if (c == OUTPUT) o.output = optarg;
        if (c == DATA) o.data = optarg;
        if (c == INPUTS) o.inputs = n;
        if (c == TRIES) o.tries = n;
        if (c == SEED) o.seed = n;
        if (c == 't') threads = n;
        if (c == JSON) p.json = true;
        if (c == 'q') p.quiet = true;
    }
    if (optind == argc || threads > 4096) {
        fputs("pare-check: a certificate is needed; see pare-check --help\n", stderr);
        return USAGE;
    }
#ifdef _OPENMP
    if (threads) omp_set_num_threads((int)threads);
#endif
    int started = 0; /* threads: now, while there is memory */
#pragma omp parallel
#pragma omp atomic
    started++;
    o.progress = started > 0 && isatty(STDERR_FILENO) && !p.quiet;
    int worst = 0;
    for (int i = optind; i < argc; i++) {
        const int code = check_file(argv[i], &o, p);
        if (code > worst) worst = code;
    }
#pragma omp parallel
    flint_cleanup();
    return worst;
}

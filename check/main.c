/* main.c - the command: options, one job for each certificate, and what is printed of it. */
#include "check.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
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
    "A second opinion on certificates of pare, by a program that shares no code with it and "
    "evaluates\n"
    "both models in ball arithmetic. Every statement is confirmed (proven here again), REFUTED (by "
    "a\n"
    "counterexample, in balls), not refuted (tries did not) or not checked (the line says why).\n\n"
    "  --unpacked DIR  use what `pare verify CERT --unpack DIR` wrote, where a model is a folder "
    "or a\n"
    "                  ticket, or the data are texts\n"
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
    "Example: pare verify cut.cert.json --unpack plain && pare-check cut.cert.json --unpacked "
    "plain\n";

/* FLINT and GMP cannot report that memory is out: they end in abort(). */
static _Noreturn void out_of_memory(int signal)
{
    static const char text[] = "pare-check: out of memory\n";
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(UNREADABLE);
    _exit(UNREADABLE);
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
static void print(FILE *to, const char *text)
{
    for (const char *p = text; *p; p++) fputc((unsigned char)*p < 32 || *p == 127 ? '?' : *p, to);
}

static int verdict_of(const job *j)
{
    return j->count[REFUTED] > 0 ? NOT_TRUE : j->t.code;
}

static void print_lines(const job *j, const char *path, bool quiet)
{
    static const char *const verdicts[VERDICTS] = {"confirmed", "REFUTED", "not refuted",
                                                   "not checked"};
    const int code = verdict_of(j);
    for (const statement *s = j->first; s; s = s->next) {
        if (quiet && s->verdict != REFUTED) continue;
        printf("%-12s ", verdicts[s->verdict]);
        print(stdout, s->what);
        fputs(" - ", stdout);
        print(stdout, s->why);
        putchar('\n');
    }
    fputs("verdict      ", stdout);
    print(stdout, path);
    printf(": %s; %zu confirmed, %zu refuted, %zu not refuted, %zu not checked\n",
           code == 0          ? "nothing is refuted"
           : code == NOT_TRUE ? "REFUTED"
                              : "cannot be checked",
           j->count[CONFIRMED], j->count[REFUTED], j->count[NOT_REFUTED], j->count[NOT_CHECKED]);
}

static void print_json(const job *j, const char *path)
{
    static const char *const keys[VERDICTS] = {"confirmed", "refuted", "not_refuted",
                                               "not_checked"};
    cJSON *const o = cJSON_CreateObject(), *const list = cJSON_AddArrayToObject(o, "statements");
    cJSON_AddStringToObject(o, "certificate", path);
    cJSON_AddNumberToObject(o, "exit", verdict_of(j));
    cJSON_AddStringToObject(o, "trouble", j->t.text);
    for (verdict v = 0; v < VERDICTS; v++) cJSON_AddNumberToObject(o, keys[v], (double)j->count[v]);
    for (const statement *s = j->first; s; s = s->next) {
        cJSON *const line = cJSON_CreateObject();
        cJSON_AddStringToObject(line, "verdict", keys[s->verdict]);
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

/* ---- one certificate ------------------------------------------------------------------------- */

static void read_and_check(job *j, void *with)
{
    const char *const path = with, *const slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + (slash == path) : 0;
    const bytes text = read_file(j, path);
    check_certificate(j, path, words(j, "%.*s", folder, path), text.v, text.n);
}

static int check_file(char *path, const options *o, bool json, bool quiet)
{
    job j = {.o = o, .link = "", .started = seconds()};
    attempt(&j, read_and_check, path);
    if (o->progress) fputs("\r\033[K", stderr);
    if (json)
        print_json(&j, path);
    else
        print_lines(&j, path, quiet);
    fflush(stdout);
    if (j.t.code) {
        fputs("pare-check: ", stderr);
        print(stderr, j.t.text);
        fputc('\n', stderr);
    }
    const int code = verdict_of(&j);
    release(&j, NULL, NULL);
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
    bool json = false, quiet = false;
    uint64_t threads = 0, n = 0;
    int c;
    signal(SIGABRT, out_of_memory);
    while ((c = getopt_long(argc, argv, "t:qh", list, NULL)) != -1) {
        const bool number = c == INPUTS || c == TRIES || c == SEED || c == 't';
        if (c == '?') return USAGE;
        if (c == 'h') return fputs(help, stdout), 0;
        if (number && !read_size(optarg, &n)) {
            fprintf(stderr, "pare-check: '%s' is not a whole number\n", optarg);
            return USAGE;
        }
        if (c == UNPACKED) o.unpacked = optarg;
        if (c == INPUT) o.moved[0] = optarg;
        if (c == OUTPUT) o.moved[1] = optarg;
        if (c == DATA) o.moved[2] = optarg;
        if (c == INPUTS) o.inputs = n;
        if (c == TRIES) o.tries = n;
        if (c == SEED) o.seed = n;
        if (c == 't') threads = n;
        if (c == JSON) json = true;
        if (c == 'q') quiet = true;
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
    o.progress = started > 0 && isatty(STDERR_FILENO) && !quiet;
    int worst = 0;
    for (int i = optind; i < argc; i++) {
        const int code = check_file(argv[i], &o, json, quiet);
        if (code > worst) worst = code;
    }
#pragma omp parallel
    flint_cleanup();
    return worst;
}

/* 09_cut_verify.c - cut a graph transformer from 64 dimensions to 8, write the result with a
 * certificate, and verify the certificate. Then halve its bound by hand: it is refused. Run it in
 * the folder that holds models/. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <pare/pare.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pare_status cut(const char *in, const char *board, const char *out, pare_arena *a,
                       const pare_exec *exec, pare_err *err)
{
    pare_model *m = NULL, *small = NULL;
    pare_width_report report;
    pare_dataset data = {0};
    pare_inputs set;
    pare_cert cert;
    char bound[40];
    pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
    w.dim = 8;
    pare_publish_opts p = PARE_PUBLISH_OPTS_DEFAULT; /* max_error: the largest you accept */
    p.in_path = in;
    p.out_path = out;
    p.data_path = board;
    p.set = &set;
    p.prover = &pare_width_provers[w.method];
    p.exec = exec;
    pare_status st = pare_model_load(&m, in, err);
    if (!st) st = pare_dataset_load(&data, a, m, board, NULL, err);
    set = data.inputs;
    if (!st) st = pare_width(&small, &report, m, &set, &w, exec, err);
    if (!st) st = pare_publish(&cert, a, m, &small, &p, err);
    if (!st)
        printf("64 -> %zu dimensions; no output moves by more than %s\n", report.dim,
               pare_ub_format(bound, pare_ub_exact(cert.proven), 3));
    pare_model_free(m);
    pare_model_free(small);
    return st;
}

/* The same certificate with half its bound. */
static pare_status forge(const char *from, const char *to, pare_arena *a, pare_err *err)
{
    pare_cert *c = NULL;
    const pare_status st = pare_cert_read(&c, a, from, err);
    if (st) return st;
    c->proven /= 2;
    return pare_cert_write(c, to, true, err);
}

static pare_status run(const char *folder, pare_arena *a, pare_err *err)
{
    const pare_exec exec = {.threads = pare_cores()};
    pare_verify_file_opts v = PARE_VERIFY_FILE_OPTS_DEFAULT;
    v.exec = &exec;
    char *const board = pare_sprintf(a, "%s/board.npz", folder);
    char *const out = pare_sprintf(a, "%s/small.safetensors", folder);
    char *const cert = pare_sprintf(a, "%s/small.safetensors.cert.json", folder);
    if (!board || !out || !cert) return pare_no_memory(err);
    pare_status st = pare_make_minesweeper(board, 20, 1, false, err);
    if (!st) st = cut("models/minesweeper.safetensors", board, out, a, &exec, err);
    if (!st) st = pare_verify_file(cert, &v, err);
    if (!st) puts("verified from the files");
    if (!st) st = forge(cert, cert, a, err);
    if (!st && pare_verify_file(cert, &v, err) == PARE_ERR_VERIFY) {
        const char *const why = strstr(err->msg, "proven:");
        printf("refused: %s\n", why ? why : err->msg);
    } else if (!st) {
        st = pare_fail(err, PARE_ERR_VERIFY, "a forged certificate was accepted");
    }
    unlink(board), unlink(out), unlink(cert);
    return st;
}

int main(void)
{
    char folder[] = "/tmp/pare-example-XXXXXX";
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    if (!a || !mkdtemp(folder)) return 2;
    const pare_status st = run(folder, a, &err);
    if (st) fprintf(stderr, "%s\n", err.msg);
    rmdir(folder);
    pare_arena_free(a);
    return pare_exit_code(st);
}

/* report.c - one page to read and to show (pare/plan.h). */
#include "length/length_cert_file.h"
#include "report_write.h"
#include "items.h"

#include "base/json.h"
#include "base/support.h"
#include "plan/verify_file.h"
#include <pare/plan.h>
#include <string.h>

/* Parameters and bytes of a model, counted in the very bytes that its certificate is about. False:
 * they are not there any more. */
static bool count_sizes(pare_size *out, double *bytes, const item *it, const pare_file_ref *ref,
                        page *p)
{
    const char *const path = pare_path_beside(p->w.arena, it->path, ref->path);
    pare_files *const files = pare_files_new();
    pare_model *m = NULL;
    char sha256[PARE_SHA256_HEX] = "";
    pare_err err = {0};
    pare_status st = path && files ? PARE_OK : PARE_ERR_MEMORY;
    if (!st) st = pare_model_load_as(&m, path, NULL, files, &err);
    if (!st) st = pare_files_identity(sha256, files, path, &err);
    *bytes = 0;
    for (size_t i = 0; !st && i < pare_files_count(files); i++) {
        pare_blob *b = NULL;
        st = pare_files_read(files, &b, pare_files_path(files, i), &err);
        if (!st) *bytes += (double)b->bytes;
        pare_blob_release(b);
    }
    if (!st) *out = pare_model_size(m, 1, 0);
    if (st == PARE_ERR_MEMORY && !p->w.st) p->w.st = pare_no_memory(p->w.err);
    pare_model_free(m);
    pare_files_free(files);
    return !st && strcmp(sha256, ref->sha256) == 0;
}

static pare_status verify_all(items *all, page *p, report_verifier *verify, void *self)
{
    pare_err *const err = p->w.err;
    for (size_t i = 0; i < all->n && verify; i++) {
        item *it = &all->v[i];
        if (it->kind != ITEM_CUT && it->kind != ITEM_LENGTH) continue;
        const pare_status st = verify(self, it->path, it->cert, it->cert ? NULL : it->json, err);
        if (st && st != PARE_ERR_VERIFY) return st;
        it->holds = st ? PARE_FALSE : PARE_TRUE;
        if (st && !(it->why = pare_strdup(p->w.arena, err->msg))) return pare_no_memory(err);
        it->counted = !st && it->cert &&
                      count_sizes(&it->before, &it->file_before, it, &it->cert->input, p) &&
                      count_sizes(&it->after, &it->file_after, it, &it->cert->output, p);
        if (p->w.st) return p->w.st;
    }
    return PARE_OK;
}

pare_status report_write(const char *path, const char *const *files, size_t n,
                         const pare_report_opts *o, report_verifier *verify, void *self,
                         pare_err *err)
{
    static void (*const card_of[])(page *, const item *) = {
        [ITEM_CUT] = card_cut, [ITEM_PROBE] = card_probe, [ITEM_REPRO] = card_repro,
        [ITEM_LOG] = card_log, [ITEM_PLAN] = card_plan,   [ITEM_LENGTH] = card_length,
    };
    enum { FEW = 2 };
    items all = {0};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    page p = {.w = {.arena = a, .err = err}};
    p.w.st = items_read(&all, &p, files, n);
    if (!p.w.st) p.w.st = verify_all(&all, &p, verify, self);
    if (!p.w.st) p.w.st = pare_out_open(&p.out, path, o->overwrite, err);
    if (!p.w.st) {
        page_begin(&p, o->title ? o->title : "pare report");
        p.open = all.n <= FEW;
        page_intro(&p, &all);
        summary_cuts(&p, &all);
        summary_repro(&p, &all);
        for (size_t i = 0; i < all.n && !p.w.st; i++) {
            p.file = all.v[i].from;
            card_of[all.v[i].kind](&p, &all.v[i]);
        }
        page_end(&p);
    }
    const pare_status st = p.w.st ? p.w.st : pare_out_commit(p.out, err);
    if (p.w.st) pare_out_abort(p.out);
    items_free(&all);
    pare_arena_free(a);
    return st;
}

/* As pare_verify_file does it, of what was read. */
static pare_status prove_again(void *self, const char *path, const pare_cert *cert,
                               const cJSON *length, pare_err *err)
{
    const pare_report_opts *const o = self;
    const pare_verify_file_opts v = {.exec = o->exec};
    pare_cert *again = NULL;
    pare_length_verified run;
    if (o->before) o->before(o->self, path);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st =
        cert ? pare_verify_cert(&again, a, cert, path, &v, err)
             : pare_length_cert_verify(&run, a, path, length, &(pare_length_verify_opts){0},
                                       o->exec, err);
    pare_arena_free(a);
    return st;
}

pare_status pare_report_write(const char *path, const char *const *files, size_t n,
                              const pare_report_opts *opts, pare_err *err)
{
    pare_report_opts o = *opts;
    pare_err own = {0}; /* the page says why a certificate is refused */
    if (!err) err = &own;
    return report_write(path, files, n, &o, o.verify ? prove_again : NULL, &o, err);
}

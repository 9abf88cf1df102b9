/* One page for people (pare/report.h). */
#include "items.h"

#include <pare/report.h>

static pare_status ask(items *all, pare_arena *a, const pare_report_opts *o, pare_err *err)
{
    for (size_t i = 0; i < all->n && o->verify; i++) {
        item *it = &all->v[i];
        if (it->kind != ITEM_CUT && it->kind != ITEM_LENGTH) continue;
        const pare_status st = o->verify(o->self, it->path, err);
        if (st && st != PARE_ERR_VERIFY) return st;
        it->holds = st ? PARE_FALSE : PARE_TRUE;
        if (st && !(it->lie = pare_strdup(a, err->msg))) return pare_no_memory(err);
    }
    return PARE_OK;
}

static void boxes(page *p, const items *all)
{
    static void (*const card[])(page *, const item *) = {
        [ITEM_CUT] = card_cut, [ITEM_PROBE] = card_probe, [ITEM_REPRO] = card_repro,
        [ITEM_LOG] = card_log, [ITEM_PLAN] = card_plan,   [ITEM_LENGTH] = card_length,
    };
    summary_cuts(p, all);
    summary_repro(p, all);
    for (size_t i = 0; i < all->n && !p->st; i++) {
        p->file = all->v[i].from;
        card[all->v[i].kind](p, &all->v[i]);
    }
}

pare_status pare_report_write(const char *path, const char *const *files, size_t n,
                              const pare_report_opts *o, pare_err *err)
{
    items all = {0};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    page p = {.arena = a, .err = err};
    p.st = items_read(&all, &p, files, n);
    if (!p.st) p.st = ask(&all, a, o, err);
    if (!p.st) p.st = pare_out_open(&p.out, path, o->overwrite, err);
    if (!p.st) {
        page_begin(&p, o->title ? o->title : "pare report");
        boxes(&p, &all);
        page_end(&p);
    }
    const pare_status st = p.st ? p.st : pare_out_commit(p.out, err);
    if (p.st) pare_out_abort(p.out);
    items_free(&all);
    pare_arena_free(a);
    return st;
}

/* Rows with radii: every output of every small model, computed with 113 bits, lies within its
 * radius; and the radii are of the size of roundings. Rows that begin with a larger radius end with
 * one that covers whatever lies within it. */
#include "edit_models.h"
#include "width/patch.h"
#include <enclose_quad.h>

enum { NODES = 14, SEEDS = 10, DRAWS = 20 };

/* A graph through the net as one list of rows, in two parts; features are known up to `off`. */
static pare_mat run_rows(stage *s, double *rad, const patch_net *p, const pare_mat *x,
                         const pare_graph *g, double off)
{
    pare_work *const w = &s->w;
    const size_t n = x->rows, half = n / 2;
    patch_rows now = patch_rows_new(w, p, n), next = patch_rows_new(w, p, n);
    patch_scratch t = patch_scratch_new(w, p, n, n);
    uint32_t *const self = pare_work_alloc(w, n, sizeof *self);
    pare_mat y = mat_zeros(w, n, p->top.w.rows);
    assert_work(s);
    for (size_t i = 0; i < n; i++) self[i] = (uint32_t)i;
    patch_enter(p, &now, x, 0, n);
    for (size_t i = 0; i < n; i++) now.rad[i] = raised(now.rad[i] + p->stem.two * off);
    for (size_t l = 0; l < p->nlayers; l++) {
        const patch_view v = {
            .base = &now, .split = n, .rows = n, .self = self, .ptr = g->ptr, .idx = g->idx};
        patch_project(&p->layers[l], &now, 0, n);
        patch_step(&p->layers[l], &v, &next, &t, 0, half);
        patch_step(&p->layers[l], &v, &next, &t, half, n);
        const patch_rows swap = now;
        now = next;
        next = swap;
    }
    patch_leave(p, &now, &y, rad, 0, n);
    return y;
}

/* Largest |exact - computed| / radius over the entries; *wide: largest radius over the largest
 * entry. */
static double worst_share(stage *s, double *wide, const pare_model *m, const pare_input *in)
{
    const pare_mat x = pare_mat_of((double *)(uintptr_t)in->x, in->tokens, in->width);
    double rad[NODES], share = 0, most = 0, radius = 0;
    const patch_net p = patch_read(&s->w, m);
    assert_work(s);
    const pare_graph g = key_graph(&s->w, &m->pattern, in->graph, in->tokens);
    const pare_mat y = run_rows(s, rad, &p, &x, &g, 0);
    const qmat exact = q_model(s->w.arena, m, in, 0);
    for (size_t i = 0; i < y.rows; i++)
        for (size_t c = 0; c < y.cols; c++) {
            const quad off = q_abs(exact.v[i * exact.d + c] - (quad)pare_row(&y, i)[c]);
            share = fmax(share, (double)(off / (quad)rad[i]));
            most = fmax(most, fabs(pare_row(&y, i)[c]));
            radius = fmax(radius, rad[i]);
        }
    *wide = radius / most;
    return share;
}

static void every_output_is_within_its_radius(void **state)
{
    (void)state;
    static const size_t alone[] = {5, SIZE_MAX};
    for (size_t temper = 0; temper < TEMPERS; temper++) {
        double most = 0, widest = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            stage s;
            double wide;
            stage_open(&s, 100 * temper + seed);
            pare_model *const m = temper_model(&s, seed, temper, 3);
            const pare_graph g = rand_graph(&s, NODES, seed % 5, seed % 3 ? NULL : alone);
            const pare_mat x = repeating_rows(&s, NODES, 5);
            const pare_input in = input_of(&x, &g);
            const double share = worst_share(&s, &wide, m, &in);
            if (!(share <= 1))
                fail_msg("%s, seed %llu: %g of its radius", temper_names[temper],
                         (unsigned long long)seed, share);
            most = fmax(most, share);
            widest = fmax(widest, wide);
            pare_model_free(m);
            stage_close(&s);
        }
        print_message("%-12s errors up to %.2g of the radius, radii up to %.2g of the outputs\n",
                      temper_names[temper], most, widest);
        assert_true(temper == 1 || temper == 4 || widest < 1e-8);
    }
}

/* x with every row moved by at most `off`: half of them by all of it. */
static pare_mat moved_rows(stage *s, const pare_mat *x, double off)
{
    pare_mat y = mat_copy(&s->w, x);
    for (size_t i = 0; i < x->rows; i++) {
        double d[8], sum = 0;
        const double far = i % 2 ? off * pare_rng_uniform(&s->rng) : off;
        for (size_t k = 0; k < x->cols; k++) d[k] = pare_rng_normal(&s->rng);
        for (size_t k = 0; k < x->cols; k++) sum += d[k] * d[k];
        for (size_t k = 0; k < x->cols; k++)
            pare_row_mut(&y, i)[k] += 0.999999 * far * d[k] / sqrt(sum);
    }
    return y;
}

/* Largest |outputs of moved features - computed| / radius. */
static double moved_share(stage *s, const pare_model *m, const pare_mat *x, const pare_graph *g,
                          double off)
{
    double rad[NODES], share = 0;
    const patch_net p = patch_read(&s->w, m);
    assert_work(s);
    const pare_graph whole = key_graph(&s->w, &m->pattern, g, x->rows);
    const pare_mat y = run_rows(s, rad, &p, x, &whole, off);
    for (size_t draw = 0; draw < DRAWS; draw++) {
        const pare_mat z = moved_rows(s, x, off);
        const pare_input in = input_of(&z, g);
        const qmat exact = q_model(s->w.arena, m, &in, 0);
        for (size_t i = 0; i < y.rows; i++)
            for (size_t c = 0; c < y.cols; c++) {
                const quad far = q_abs(exact.v[i * exact.d + c] - (quad)pare_row(&y, i)[c]);
                share = fmax(share, (double)(far / (quad)rad[i]));
            }
    }
    return share;
}

static void what_lies_within_a_radius_stays_within(void **state)
{
    (void)state;
    static const size_t alone[] = {5, SIZE_MAX};
    static const double offs[] = {1e-8, 1e-4, 1e-2, 1};
    for (size_t temper = 0; temper < TEMPERS; temper++) {
        double most = 0;
        for (uint64_t seed = 1; seed <= 12; seed++) {
            stage s;
            stage_open(&s, 200 * temper + seed);
            pare_model *const m = temper_model(&s, seed, temper, 3);
            const pare_graph g = rand_graph(&s, NODES, 1 + seed % 4, seed % 3 ? NULL : alone);
            const pare_mat x = repeating_rows(&s, NODES, 5);
            const double share = moved_share(&s, m, &x, &g, offs[seed % 4]);
            if (!(share <= 1))
                fail_msg("%s, seed %llu: %g of its radius", temper_names[temper],
                         (unsigned long long)seed, share);
            most = fmax(most, share);
            pare_model_free(m);
            stage_close(&s);
        }
        print_message("%-12s moved by up to %.2g of the radius\n", temper_names[temper], most);
    }
}

/* The first map alone, whose roundings nothing else covers. */
static void a_map_is_within_its_radius(void **state)
{
    (void)state;
    double most = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        stage s;
        stage_open(&s, seed);
        pare_model *const m = temper_model(&s, seed, 0, 2);
        const pare_mat x = rand_mat(&s, NODES, 4, 1);
        const patch_net p = patch_read(&s.w, m);
        patch_rows t = patch_rows_new(&s.w, &p, NODES);
        assert_work(&s);
        patch_enter(&p, &t, &x, 0, NODES);
        for (size_t i = 0; i < NODES; i++) {
            quad sum = 0;
            for (size_t o = 0; o < p.stem.w.rows; o++) {
                quad y = pare_weight_at(&m->embedding.map.b, o);
                for (size_t k = 0; k < 4; k++)
                    y +=
                        (quad)pare_weight_at(&m->embedding.map.w, 4 * o + k) * (quad)x.v[4 * i + k];
                sum += (y - pare_row(&t.h, i)[o]) * (y - pare_row(&t.h, i)[o]);
            }
            const double far = (double)q_sqrt(sum);
            assert_le(far, t.rad[i]);
            most = fmax(most, far / t.rad[i]);
        }
        pare_model_free(m);
        stage_close(&s);
    }
    print_message("a map is off by up to %.2g of its radius\n", most);
    assert_true(most > 0.07); /* the roundings that are seen depend on the CPU */
}

/* ---- one head of one dimension, where every corner can be tried ---- */

enum { KEYS = 3 };

typedef struct corner {
    double q, k[KEYS], v[KEYS], eq, ek[KEYS], ev[KEYS], scale;
    size_t n;
} corner;

static quad head_at(const corner *c, unsigned signs)
{
    quad sum = 0, o = 0, s[KEYS], top = -1e9;
    const quad q = (quad)c->q + (signs & 1 ? 1 : -1) * (quad)c->eq;
    for (size_t j = 0; j < c->n; j++) {
        const quad k = (quad)c->k[j] + (signs >> (1 + j) & 1 ? 1 : -1) * (quad)c->ek[j];
        s[j] = (quad)c->scale * q * k;
        if (s[j] > top) top = s[j];
    }
    for (size_t j = 0; j < c->n; j++) {
        const quad v = (quad)c->v[j] + (signs >> (4 + j) & 1 ? 1 : -1) * (quad)c->ev[j];
        const quad w = q_exp(s[j] - top);
        sum += w;
        o += w * v;
    }
    return o / sum;
}

/* Largest distance of a corner from the computed output, in radii. */
static double corner_share(const corner *c)
{
    double qkv[3 * KEYS], center = 0, out, weight[KEYS], share = 0;
    const uint32_t self = 0, idx[KEYS] = {0, 1, 2};
    const size_t ptr[] = {0, c->n};
    patch_mark mark[KEYS];
    for (size_t j = 0; j < c->n; j++) center += c->k[j] / (double)c->n;
    for (size_t j = 0; j < c->n; j++) {
        const double row[] = {c->q, c->k[j], c->v[j]};
        memcpy(qkv + 3 * j, row, sizeof row);
        mark[j] = (patch_mark){fabs(c->q),
                               c->eq,
                               fabs(c->k[j]),
                               c->ek[j],
                               fabs(c->v[j]),
                               c->ev[j],
                               pow(c->k[j] - center, 2) * (1 + 1e-15)};
    }
    patch_head hd = {.dk = 1, .dv = 1, .k = 1, .v = 2, .scale = c->scale, .round = 6e-16};
    const patch_layer l = {.nheads = 1, .pooled = 1, .heads = &hd};
    const patch_rows rows = {.n = c->n, .qkv = pare_mat_of(qkv, c->n, 3), .mark = mark};
    const patch_view v = {
        .base = &rows, .split = c->n, .rows = 1, .self = &self, .ptr = ptr, .idx = idx};
    const double rad = patch_attend(&out, &l, &v, 0, weight);
    for (unsigned signs = 0; signs < 2u << (3 + c->n); signs++)
        share = fmax(share, (double)(q_abs(head_at(c, signs) - (quad)out) / (quad)rad));
    return share;
}

/* Only some of the radii are there, so that each part of the bound is held against its own. */
static void the_radius_of_a_head_is_nearly_attained(void **state)
{
    (void)state;
    static const char *const parts[] = {"queries", "keys", "values", "all"};
    pare_rng r = pare_rng_at(12, 0);
    for (unsigned part = 0; part < 4; part++) {
        double most = 0;
        for (int i = 0; i < 400; i++) {
            corner c = {.n = 1 + (size_t)pare_rng_below(&r, KEYS), .q = pare_rng_normal(&r)};
            const double size = pow(10, -6 * pare_rng_uniform(&r)) / 50;
            c.scale = exp(pare_rng_normal(&r));
            if (part == 0 || part == 3) c.eq = size;
            for (size_t j = 0; j < c.n; j++) {
                c.k[j] = pare_rng_normal(&r);
                c.v[j] = 1 + pare_rng_normal(&r);
                if (part == 1 || part == 3) c.ek[j] = size * (i % 2 ? 1 : pare_rng_uniform(&r));
                if (part >= 2) c.ev[j] = size * (i % 2 ? 1 : pare_rng_uniform(&r));
            }
            const double share = corner_share(&c);
            if (!(share <= 1)) fail_msg("%s, draw %d: %g of the radius", parts[part], i, share);
            most = fmax(most, share);
        }
        print_message("%-8s corners up to %.3f of the radius\n", parts[part], most);
        assert_true(most > 0.9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_output_is_within_its_radius),
                                       cmocka_unit_test(what_lies_within_a_radius_stays_within),
                                       cmocka_unit_test(a_map_is_within_its_radius),
                                       cmocka_unit_test(the_radius_of_a_head_is_nearly_attained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

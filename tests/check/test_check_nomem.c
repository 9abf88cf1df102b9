/* Memory runs out, or one allocation is refused, at every place of pare-check: exit code 2 with the reason, nothing
 * refuted, no crash. (FLINT and GMP cannot report it: there main.c ends the program.) */
#include <command.h>
#include <fail_alloc.h>

#undef fail /* of cmocka; check.h has a function of that name */
#include "../../check/check.h"

typedef struct scene {
    char dir[200], cert[300], unpacked[300];
} scene;

/* The exit code, what was said, and how much of it was refuted. */
static int run(const scene *s, char why[600], size_t *refuted)
{
    const options o = {.tries = 1,
                       .most_work = 1e9,
                       .most_balls = 1 << 20,
                       .unpacked = *s->unpacked ? s->unpacked : NULL};
    job j = {.o = &o};
    const bool good = check_certificate(&j, s->cert);
    snprintf(why, 600, "%s", j.trouble);
    *refuted = count_of(&j, REFUTED);
    assert_int_equal(good, j.code == 0);
    end_job(&j);
    return j.code;
}

static void refuse_each(scene *s, const char *name)
{
    char why[600];
    size_t refuted;
    test_path(s->cert, s->dir, name);
    assert_int_equal(run(s, why, &refuted), 0);
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        /* The first places one by one, those in loops ever more rarely. */
        for (long n = 0; hit; n += 1 + n / 100) {
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const int code = run(s, why, &refuted);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            const bool right = code == (hit ? UNREADABLE : 0) && refuted == 0;
            if (!right || (hit && !strstr(why, "memory")))
                print_error("%s, allocation %ld%s: code %d, %zu refuted, %s\n", s->cert, n,
                            once ? " alone" : "", code, refuted, why);
            assert_true(right && (!hit || strstr(why, "memory")));
        }
    }
}

static void without_memory_there_is_a_reason_and_no_verdict(void **state)
{
    (void)state;
    static scene s;
    s = (scene){0};
    test_mkdir(s.dir);
    fail_alloc_in_json();
    command(s.dir, "data model --kind graph --dim 4 --heads 1 --layers 1 -o g");
    command(s.dir, "data minesweeper --side 3 --seed 1 -o a.npz");
    command(s.dir, "width g --method qk --qk-dim 2 --data a.npz -o qk");
    refuse_each(&s, "qk.cert.json");
    command(
        s.dir,
        "data model --kind bert --dim 4 --heads 2 --layers 1 --context 3 --vocab 4 --ffn 2 -o b");
    command(s.dir, "data random --count 3 --tokens 3 --vocab 4 -o h.npy");
    command(s.dir, "depth b --kind uniform --layers 0 --data h.npy --ball 0.1 -o d");
    refuse_each(&s, "d.cert.json");
    command(s.dir, "fold b --data h.npy -o fb");
    command(s.dir, "depth fb --kind uniform --layers 0 --data h.npy -o d3");
    command(s.dir, "compose fb.cert.json d3.cert.json -o chain.cert.json");
    refuse_each(&s, "chain.cert.json");
    command(s.dir, "data model --dim 4 --heads 2 --layers 1 --context 4 --vocab 4 --ffn 2 -o m");
    command(s.dir, "length m --tokens 4 --oracle 2 --certify -o len.json");
    command(s.dir, "verify len.json.cert.json --unpack plain");
    test_path(s.unpacked, s.dir, "plain");
    refuse_each(&s, "len.json.cert.json");
    command(s.dir, "ticket m --bits 8 --allow-larger -o t");
    command(s.dir, "verify t.cert.json --unpack plain -f");
    refuse_each(&s, "t.cert.json");
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_reason_and_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

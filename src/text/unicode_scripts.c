/* unicode_scripts.c - where the script of a text changes, as the pre-tokenizer UnicodeScripts of Hugging
 * Face's tokenizers sees it, as a pattern (regex.h).
 *
 * Its table is that of Unicode 9: what came later has no script and joins what is before it, as a
 * blank does. Hiragana, katakana and the sign that lengthens their vowels count as Han. What has no
 * script at the very begin of a text is lost. */
#include "unicode_scripts.h"
#include "text_buffer.h"
#include <stdio.h>
#include <string.h>

/* The scripts of Unicode 9 but for those that the pattern begins with. */
static const char scripts[] =
    "Adlam Ahom AnatolianHieroglyphs Arabic Armenian Avestan Balinese Bamum BassaVah "
    "Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid CanadianAboriginal "
    "Carian CaucasianAlbanian Chakma Cham Cherokee Coptic Cuneiform Cypriot Cyrillic "
    "Deseret Duployan EgyptianHieroglyphs Elbasan Ethiopic Georgian Glagolitic "
    "Gothic Grantha Greek Gujarati Gurmukhi Hangul Hanunoo Hatran Hebrew ImperialAramaic "
    "Inherited InscriptionalPahlavi InscriptionalParthian Javanese Kaithi Kannada KayahLi "
    "Kharoshthi Khmer Khojki Khudawadi Lao Lepcha Limbu LinearA LinearB Lisu Lycian "
    "Lydian Mahajani Malayalam Mandaic Manichaean Marchen MeeteiMayek MendeKikakui "
    "MeroiticCursive MeroiticHieroglyphs Miao Modi Mongolian Mro Multani Myanmar "
    "Nabataean NewTaiLue Newa Nko Ogham OlChiki OldHungarian OldItalic OldNorthArabian "
    "OldPermic OldPersian OldSouthArabian OldTurkic Oriya Osage Osmanya PahawhHmong "
    "Palmyrene PauCinHau PhagsPa Phoenician PsalterPahlavi Rejang Runic Samaritan "
    "Saurashtra Sharada Shavian Siddham SignWriting Sinhala SoraSompeng Sundanese "
    "SylotiNagri Syriac Tagalog Tagbanwa TaiLe TaiTham TaiViet Takri Tamil Tangut Telugu "
    "Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai WarangCiti Yi ";
/* The characters after Unicode 9 (DerivedAge.txt), with the holes between them that have none. */
static const char later[] =
    "560 588 5EF 61D 7FD-7FF 860-89F 8B5 8BE-8D3 9FC-9FE A76 AFA-AFF B55 C04 C3C C5D C77 "
    "C84 CDD CF3-D00 D04 D3B-D3C D81 E86 E89 E8C E8E-E93 E98 EA0 EA8-EA9 EAC EBA ECE 170D "
    "1715-171F 180F 1878 1ABF-1ACE 1B4C 1B7D-1B7E 1C90-1CBF 1CF7 1CFA 1DF6-1DFA 20BF-20C0 "
    "23FF 2B97 2BBA-2BBC 2BC9 2BD2-2BEB 2BF0-2BFF 2C2F 2C5F 2E45-2E5D 312E-312F 31BB-31BF "
    "32FF 4DB6-4DBF 9FD6-9FFF A7AF A7B8-A7F6 A82C A8FE-A8FF AB66-AB6B FBC2 FD40-FD4F FDCF "
    "FDFE-FDFF 1019C 1032D-1032F 10570-105BC 10780-107BA 10A34-10A35 10A48 10D00-10D39 "
    "10E80-10FF6 11070-11075 110C2-110CD 11144-11147 111CE-111CF 1123F-11241 1133B 1145A "
    "1145E-11461 116B8-116B9 1171A 11740-1183B 11900-11ABF 11B00-11B09 11D00-11FFF "
    "12F90-12FF2 1342F-13455 16A70-16AC9 16E40-16E9A 16F45-16F4F 16F7F-16F87 16FE1-16FF1 "
    "187ED-187F7 18AF3-1AFFE 1B002-1B2FB 1CF00-1CFC3 1D1E9-1D1EA 1D2C0-1D2F3 1D372-1D378 "
    "1DF00-1DF2A 1E030-1E7FE 1E94B 1EC71-1ED3D 1F10D-1F10F 1F12F 1F16C-1F16F 1F1AD "
    "1F260-1F265 1F6D3-1F6DF 1F6F7-1F6FC 1F774-1F77F 1F7D5-1F7F0 1F8B0-1F90F 1F91F "
    "1F928-1F92F 1F931-1F932 1F93F 1F94C-1F94F 1F95F-1F97F 1F992-1F9BF 1F9C1-1FBF9 "
    "2A6D7-2A6DF 2B735-2B739 2CEB0-2EBE0 30000-323AF ";

/* U+30FC, which lengthens vowels; what was Common and what was Devanagari in Unicode 9 and is not any
 * more. */
#define LENGTHENER     "\\x{30FC}"
#define WAS_COMMON     "\\x{589}\\x{61C}"
#define WAS_DEVANAGARI "\\x{953}\\x{954}"

static const char *const first_scripts[] = {
    "\\p{sc:Latin}", "(?:[^\\P{sc:Common}" LENGTHENER "]|[" WAS_COMMON "])",
    "[\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}" LENGTHENER "]",
    "[\\p{sc:Devanagari}" WAS_DEVANAGARI "]"};

static void put_text(pare_buffer *b, const char *s)
{
    pare_buffer_put(b, s, strlen(s));
}

/* A run: one of these characters, and all of them or without a script behind it. */
static void put_run(pare_buffer *b, const char *one)
{
    put_text(b, one);
    put_text(b, "(?:");
    put_text(b, one);
    put_text(b, "|(?&none))*+");
}

pare_status pare_scripts_pattern(pare_regex **out, pare_arena *a, pare_err *err)
{
    pare_buffer b = {.arena = a};
    put_text(&b, "(?(DEFINE)(?<none>[ \\p{sc:Unknown}");
    for (const char *s = later, *end; *s; s = end + 1) {
        const size_t n = (size_t)((end = strchr(s, ' ')) - s), first = strcspn(s, "- ");
        put_text(&b, "\\x{");
        pare_buffer_put(&b, s, first);
        put_text(&b, "}");
        if (first == n) continue;
        put_text(&b, "-\\x{");
        pare_buffer_put(&b, s + first + 1, n - first - 1);
        put_text(&b, "}");
    }
    put_text(&b, "]))(?!(?&none))(?:");
    for (size_t i = 0; i < sizeof first_scripts / sizeof *first_scripts; i++) {
        if (i) put_text(&b, "|");
        put_run(&b, first_scripts[i]);
    }
    for (const char *s = scripts, *end; *s; s = end + 1) {
        char one[96];
        end = strchr(s, ' ');
        snprintf(one, sizeof one, "[^\\P{sc:%.*s}" WAS_COMMON WAS_DEVANAGARI "]", (int)(end - s),
                 s);
        put_text(&b, "|");
        put_run(&b, one);
    }
    put_text(&b, ")");
    if (b.failed) return pare_no_memory(err);
    return pare_regex_new(out, a, b.s, b.n, false, err);
}

//! Character references: `&amp;`, `&#8212;`, `&#x2014;`.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use encoding_rs::WINDOWS_1252;

/// The longest known name.
const NAME_BYTES: usize = 16;

/// The text with its references resolved. Other text stays as it is.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else {
        return text.into();
    };
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        resolved.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(&rest[1..]).unwrap_or(('&', 0));
        resolved.push(character);
        rest = &rest[1 + length..];
        next = rest.find('&');
    }
    resolved.push_str(rest);
    resolved.into()
}

/// The character of a reference, and the length of the reference after its `&`.
fn reference(text: &str) -> Option<(char, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        let (digits, radix, head) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16, 2),
            None => (number, 10, 1),
        };
        let count = digits
            .bytes()
            .take_while(|byte| char::from(*byte).is_digit(radix))
            .count();
        let end = head + count + usize::from(digits.as_bytes().get(count) == Some(&b';'));
        let value = u32::from_str_radix(digits.get(..count)?, radix);
        // Without digits it is not a reference; with too many it is a character that does not exist.
        return (count > 0).then(|| (numbered(value.unwrap_or(u32::MAX)), end));
    }
    let count = text
        .bytes()
        .take(NAME_BYTES)
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    let name = text.get(..count)?;
    if text.as_bytes().get(count) == Some(&b';') {
        return Some((named(name)?, count + 1));
    }
    // These few often lack the semicolon.
    let bare = ["amp", "lt", "gt", "quot", "nbsp", "copy", "reg"]
        .into_iter()
        .find(|bare| *bare == name)?;
    Some((named(bare)?, bare.len()))
}

fn numbered(value: u32) -> char {
    match value {
        // Pages that declare Latin-1 and use Windows-1252.
        0x80..=0x9f => {
            let byte = [u8::try_from(value).unwrap_or(b'?')];
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(&byte);
            text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        0 => char::REPLACEMENT_CHARACTER,
        value => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn named(name: &str) -> Option<char> {
    static TABLE: LazyLock<HashMap<&str, char>> = LazyLock::new(|| {
        let words: Vec<&str> = NAMES.split(' ').collect();
        let character = |code| char::from_u32(u32::from_str_radix(code, 16).ok()?);
        words
            .chunks_exact(2)
            .filter_map(|pair| Some((pair[0], character(pair[1])?)))
            .collect()
    });
    TABLE.get(name).copied()
}

/// Names and code points: all of HTML 4, and the common ones of later versions.
const NAMES: &str = "\
    AElig c6 Aacute c1 Acirc c2 Agrave c0 Alpha 391 Aring c5 Atilde c3 Auml c4 Beta 392 Cacute 106 \
    Ccaron 10c Ccedil c7 Chi 3a7 Dagger 2021 Delta 394 ETH d0 Eacute c9 Ecirc ca Egrave c8 Epsilon 395 \
    Eta 397 Euml cb Gamma 393 Hat 5e Iacute cd Icirc ce Igrave cc Iota 399 Iuml cf Kappa 39a Lambda 39b \
    Lstrok 141 Mu 39c NewLine a NoBreak 2060 Ntilde d1 Nu 39d OElig 152 Oacute d3 Ocirc d4 Ograve d2 \
    Omega 3a9 Omicron 39f Oslash d8 Otilde d5 Ouml d6 Phi 3a6 Pi 3a0 Prime 2033 Psi 3a8 Rho 3a1 \
    Sacute 15a Scaron 160 Sigma 3a3 THORN de Tab 9 Tau 3a4 Theta 398 Uacute da Ucirc db Ugrave d9 \
    Upsilon 3a5 Uuml dc Xi 39e Yacute dd Yuml 178 Zcaron 17d ZeroWidthSpace 200b Zeta 396 aacute e1 \
    abreve 103 acirc e2 acute b4 aelig e6 agrave e0 alefsym 2135 alpha 3b1 amp 26 and 2227 ang 2220 \
    aogon 105 apos 27 aring e5 ast 2a asymp 2248 atilde e3 auml e4 bdquo 201e beta 3b2 bigstar 2605 \
    brvbar a6 bsol 5c bull 2022 bullet 2022 cacute 107 cap 2229 ccaron 10d ccedil e7 cedil b8 cent a2 \
    check 2713 checkmark 2713 chi 3c7 circ 2c6 clubs 2663 colon 3a comma 2c commat 40 cong 2245 copy a9 \
    copysr 2117 crarr 21b5 cross 2717 ctdot 22ef cup 222a curren a4 dArr 21d3 dagger 2020 darr 2193 \
    dash 2010 deg b0 delta 3b4 diams 2666 divide f7 dollar 24 dstrok 111 eacute e9 ecaron 11b ecirc ea \
    egrave e8 empty 2205 emsp 2003 emsp13 2004 ensp 2002 eogon 119 epsilon 3b5 equals 3d equiv 2261 \
    eta 3b7 eth f0 euml eb euro 20ac excl 21 exist 2203 female 2640 flat 266d fnof 192 forall 2200 \
    frac12 bd frac13 2153 frac14 bc frac18 215b frac23 2154 frac34 be frasl 2044 gamma 3b3 gbreve 11f \
    ge 2265 geq 2265 grave 60 gt 3e hArr 21d4 hairsp 200a half bd harr 2194 hearts 2665 hellip 2026 \
    hookrightarrow 21aa hyphen 2010 iacute ed icirc ee iexcl a1 igrave ec image 2111 imath 131 \
    infin 221e inodot 131 int 222b iota 3b9 iquest bf isin 2208 iuml ef kappa 3ba lArr 21d0 lambda 3bb \
    lang 2329 laquo ab larr 2190 lbrace 7b lbrack 5b lceil 2308 lcub 7b ldquo 201c le 2264 leq 2264 \
    lfloor 230a lowast 2217 lowbar 5f loz 25ca lpar 28 lrm 200e lsaquo 2039 lsqb 5b lsquo 2018 \
    lstrok 142 lt 3c macr af male 2642 map 21a6 mdash 2014 micro b5 middot b7 minus 2212 mu 3bc \
    nabla 2207 nacute 144 natural 266e nbsp a0 ncaron 148 ndash 2013 ne 2260 ni 220b not ac notin 2209 \
    nsub 2284 ntilde f1 nu 3bd num 23 numsp 2007 oacute f3 ocirc f4 odblac 151 oelig 153 ograve f2 \
    oline 203e omega 3c9 omicron 3bf oplus 2295 or 2228 ordf aa ordm ba oslash f8 otilde f5 otimes 2297 \
    ouml f6 para b6 part 2202 percnt 25 period 2e permil 2030 perp 22a5 phi 3c6 phone 260e pi 3c0 \
    piv 3d6 plus 2b plusmn b1 pound a3 prime 2032 prod 220f prop 221d psi 3c8 puncsp 2008 quest 3f \
    quot 22 rArr 21d2 radic 221a rang 232a raquo bb rarr 2192 rbrace 7d rbrack 5d rcaron 159 rceil 2309 \
    rcub 7d rdquo 201d real 211c reg ae rfloor 230b rho 3c1 rlm 200f rpar 29 rsaquo 203a rsqb 5d \
    rsquo 2019 sacute 15b sbquo 201a scaron 161 scedil 15f sdot 22c5 sect a7 semi 3b sharp 266f shy ad \
    sigma 3c3 sigmaf 3c2 sim 223c sol 2f spades 2660 star 2606 starf 2605 sub 2282 sube 2286 sum 2211 \
    sung 266a sup 2283 sup1 b9 sup2 b2 sup3 b3 supe 2287 szlig df tau 3c4 telrec 2315 there4 2234 \
    theta 3b8 thetasym 3d1 thinsp 2009 thorn fe tilde 2dc times d7 trade 2122 uArr 21d1 uacute fa \
    uarr 2191 ucirc fb udblac 171 ugrave f9 uml a8 upsih 3d2 upsilon 3c5 uring 16f uuml fc vellip 22ee \
    verbar 7c vert 7c weierp 2118 xi 3be yacute fd yen a5 yuml ff zacute 17a zcaron 17e zdot 17c \
    zeta 3b6 zwj 200d zwnj 200c";

#[cfg(test)]
mod tests {
    use super::{NAMES, decoded};

    #[test]
    fn references_become_characters() {
        let check = |text: &str, expected: &str| assert_eq!(decoded(text), expected, "{text}");
        check(
            "a &amp; b &lt;c&gt; &quot;d&quot; &apos;",
            "a & b <c> \"d\" '",
        );
        check("&#8212;&#x2014;&#X2014;", "———");
        check("&#150;&#x80;", "–€");
        check("&#0;&#xD800;&#99999999999;", "\u{fffd}\u{fffd}\u{fffd}");
        check("&eacute;&Eacute;&hellip;&nbsp;.", "éÉ…\u{a0}.");
        check("AT&T &unknown; &; &# &#x; &", "AT&T &unknown; &; &# &#x; &");
        check("?a=1&copy=2&lt", "?a=1©=2<");
        check("&amp;lt;", "&lt;");
        check("&é;", "&é;");
    }

    #[test]
    fn the_table_is_pairs() {
        let words: Vec<&str> = NAMES.split(' ').collect();
        assert_eq!(words.len() % 2, 0);
        for pair in words.chunks(2) {
            assert!(
                char::from_u32(u32::from_str_radix(pair[1], 16).unwrap()).is_some(),
                "{pair:?}"
            );
            assert!(pair[0].len() <= super::NAME_BYTES);
        }
    }
}

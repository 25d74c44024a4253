"""Settings of common applications for their first start in a new HOME: no tips, tours, offers or questions.

A dialog that takes the focus from the window that was asked for gets the text that was meant for it.
"""

from __future__ import annotations

import os

_LIBREOFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Misc">
<prop oor:name="ShowTipOfTheDay" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Misc">
<prop oor:name="FirstRun" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Setup/Product">
<prop oor:name="ooSetupLastVersion" oor:op="fuse"><value>99.9</value></prop></item>
</oor:items>
"""
#: An installation of Firefox knows its profile by a hash of its own path: here those of /usr/lib/firefox-esr and
#: /usr/lib/firefox. One that stands elsewhere makes a profile of its own, with its welcome.
_FIREFOX_PROFILES = """[Install3B6073811A6ABF12]
Default=default
Locked=1

[Install4F96D1932A9F858E]
Default=default
Locked=1

[General]
StartWithLastProfile=1
Version=2

[Profile0]
Name=default
IsRelative=1
Path=default
Default=1
"""
#: GTK's animations are off, which Firefox takes as the wish for reduced motion: a page that loads would show a still
#: image on its tab, where the throbber tells that more is to come. Scrolling in steps needs no time to settle.
_FIREFOX_PREFERENCES = {
    "ui.prefersReducedMotion": "0",
    "general.smoothScroll": "false",
    "browser.aboutwelcome.enabled": "false",
    "browser.startup.homepage_override.mstone": '"ignore"',
    "startup.homepage_welcome_url": '""',
    "browser.shell.checkDefaultBrowser": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
}


def first_start_files() -> dict[str, str]:
    """Paths below HOME and their contents."""
    preferences = "".join(f'user_pref("{name}", {value});\n' for name, value in _FIREFOX_PREFERENCES.items())
    firefox = ".mozilla/firefox"
    return {
        ".config/libreoffice/4/user/registrymodifications.xcu": _LIBREOFFICE,
        os.path.join(firefox, "profiles.ini"): _FIREFOX_PROFILES,
        os.path.join(firefox, "default", "user.js"): preferences,
    }

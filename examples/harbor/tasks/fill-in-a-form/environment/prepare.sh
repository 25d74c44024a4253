#!/bin/bash
# What this task finds on its desktop.
python3 /environment/form.py >/var/log/form.log 2>&1 &
# The browser's first start shows a page of its own, unless it has been told.
mkdir -p /etc/firefox/policies
cat >/etc/firefox/policies/policies.json <<'END'
{"policies": {"OverrideFirstRunPage": "", "OverridePostUpdatePage": "", "DontCheckDefaultBrowser": true,
 "DisableTelemetry": true, "UserMessaging": {"SkipOnboarding": true},
 "Preferences": {"browser.aboutwelcome.enabled": {"Value": false},
  "datareporting.policy.dataSubmissionPolicyBypassNotification": {"Value": true}}}}
END
